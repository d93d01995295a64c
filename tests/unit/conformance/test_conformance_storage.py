"""The plan of the storage suite: which specs, in which order, and what is left."""

from __future__ import annotations

import re

import pytest
import yaml
from conformance import storage_plan, storage_record
from conformance.report import Result
from conformance.storage import DRIVER

_HEAD = "[sig-storage] External Storage [Driver: csi.kubevirt.io]"


def spec(group: str, words: str, pattern: str = "Dynamic PV (default fs)") -> str:
    return f"{_HEAD} [Testpattern: {pattern}] {group} {words}"


FIRST = spec("volumes", "should store data")
SECOND = spec("volumes", "should allow exec of files on the volume")
OWN = spec("volumes", "should store data", "Generic Ephemeral-volume (default fs) (late-binding)")
CUT = spec(
    "snapshottable", "[Feature:VolumeSnapshotDataSource] volume snapshot controller", "Dynamic Snapshot (delete policy)"
)
TWO = spec("multiVolume", "[Slow] should access to two volumes", "Dynamic PV (block volmode)")


def test_the_expression_takes_slow_specs_and_those_of_features() -> None:
    focus = storage_plan.focus("csi.kubevirt.io", storage_plan.GROUPS)
    known = spec("snapshottable", "[Feature:X] volume snapshot controller", "Pre-provisioned Snapshot (retain policy)")
    for name in (FIRST, CUT, TWO, known):
        assert re.search(focus, name)
        assert not re.search(storage_plan.SKIP, name)


def test_what_the_class_does_not_announce_is_left_out() -> None:
    for pattern in ("Inline-volume (default fs)", "Pre-provisioned PV (ext4)", "Dynamic PV (ntfs)"):
        assert re.search(storage_plan.SKIP, spec("volumes", "should store data", pattern))
    assert re.search(storage_plan.SKIP, spec("subPath", "should unmount while kubelet is down [Disruptive][Slow]"))


def test_volumes_of_several_nodes_are_asked_for_where_they_are_announced() -> None:
    focus = storage_plan.focus("csi.kubevirt.io", storage_plan.GROUPS, shared=True)
    apart = spec("multiVolume", "[Slow] should concurrently access the single volume from pods on different node")
    block = apart.replace("(default fs)", "(block volmode)")
    assert re.search(focus, block) and not re.search(storage_plan.SKIP_SHARED, block)
    for name in (apart, FIRST):
        assert not re.search(focus, name), "a file system for several nodes is refused"
    mixed = spec("multiVolume", "should access to two volumes with different volume mode", "Dynamic PV (block volmode)")
    assert re.search(storage_plan.SKIP_SHARED, mixed)

    before = yaml.safe_load(DRIVER.read_text())
    after = yaml.safe_load(storage_plan.shared_driver(DRIVER.read_text()))
    assert before["DriverInfo"]["Capabilities"]["RWX"] is False
    assert after["DriverInfo"]["Capabilities"]["RWX"] is True
    assert after["DriverInfo"]["RequiredAccessModes"] == ["ReadWriteMany"]
    assert after["DriverInfo"]["Name"] == before["DriverInfo"]["Name"] and after["Timeouts"] == before["Timeouts"]


def test_groups_take_turns_and_claims_of_pods_come_last() -> None:
    assert storage_plan.order([OWN, FIRST, CUT, SECOND, TWO, "[sig-a] of nobody"]) == [SECOND, CUT, TWO, FIRST, OWN]


def test_what_was_run_is_not_run_again_unless_failures_shall_be() -> None:
    known = {FIRST: Result(FIRST, "passed", 1.0), CUT: Result(CUT, "failed", 2.0, "no snapshot")}
    assert storage_plan.pending([FIRST, CUT, TWO], known) == [TWO]
    assert storage_plan.pending([FIRST, CUT, TWO], known, failed_too=True) == [CUT, TWO]


def test_the_table_counts_what_was_not_run() -> None:
    known = {FIRST: Result(FIRST, "passed", 1.0), CUT: Result(CUT, "failed", 2.0, "no\n  snapshot")}
    lines = storage_plan.table([FIRST, SECOND, CUT, TWO], known).splitlines()
    rows = {line.split()[0]: [int(word) for word in line.split()[1:-1]] for line in lines[1:]}
    assert rows["volumes"] == [2, 1, 0, 0, 1]
    assert rows["snapshottable"] == [1, 0, 1, 0, 0]
    assert rows["together"] == [4, 1, 1, 0, 2]
    assert "no snapshot" in storage_plan.reasons(known)


def test_the_table_says_how_many_of_those_that_apply_passed() -> None:
    known = {
        FIRST: Result(FIRST, "passed", 1.0),
        SECOND: Result(SECOND, "passed", 1.0),
        CUT: Result(CUT, "skipped", 0.1, "no such feature"),
    }
    lines = storage_plan.table([FIRST, SECOND, CUT, TWO], known).splitlines()
    shares = {line.split()[0]: line.split()[-1] for line in lines[1:]}
    assert shares["volumes"] == "100%"
    assert shares["snapshottable"] == "-"
    assert shares["multiVolume"] == "0%"
    assert shares["together"] == "66%"  # what was not run may apply
    assert storage_plan.percent(999, 1000) == "99%"


def test_a_record_says_the_same_when_it_is_read_again() -> None:
    known = {
        "b": Result("b", "failed", 12.4, "timed out\n  after\ta while"),
        "a": Result("a", "passed", 30.0, "nothing to say"),
        "strange": Result("strange", "passed", 1.0),
    }
    text = storage_record.write(["b", "a", "not run"], known)
    assert text.splitlines()[1:] == ["passed\t30\ta\t", "failed\t12\tb\ttimed out after a while"]
    assert storage_record.write(["a", "b"], storage_record.read(text)) == text


def test_a_record_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2 has 2 columns"):
        storage_record.read("state\tseconds\tspec\twhy\npassed\t3\n")
