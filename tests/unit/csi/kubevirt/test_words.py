"""Pure parts of csi.kubevirt.io: sizes, access, handles, whose something is, which machine has what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.api.names import LABEL_CSI_ROLE, LABEL_INFRA_ID
from hcp.csi.errors import InvalidArgument, OutOfRange
from hcp.csi.kubevirt import access, handles, hotplug, objects, settings
from hcp.csi.kubevirt.node import disks, mounts
from hcp.csi.kubevirt.settings import InfraClass, Settings, SnapshotClass

MI = 2**20
SETTINGS = Settings("ns", "id", InfraClass("d"), {"a": InfraClass("a", "g", True)}, {"s": SnapshotClass("s", "g")})


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_a_size_is_never_less_than_required_and_never_more_than_the_limit(required: int, limit: int) -> None:
    try:
        found = access.size(required, limit)
    except (InvalidArgument, OutOfRange):
        assert limit and (required > limit or -(-required // MI) * MI > limit or limit < MI)
        return
    assert found >= required and (not limit or found <= limit) and found % MI == 0


@given(st.integers(1, 2**40), st.integers(0, 2**30), st.integers(1, 2**40))
def test_a_grown_claim_leaves_the_file_system_its_share(before: int, more: int, growth: int) -> None:
    after = before + growth
    found = access.grown(before + more, before, after)
    assert found >= after
    assert found * before >= after * (before + more) or more == 0


@given(st.text(max_size=200))
def test_every_name_becomes_a_handle_that_is_one(name: str) -> None:
    handle = handles.handle_for(name, "vol")
    assert handles.valid(handle) and handle == handles.handle_for(name, "vol")
    assert len(handles.serial(handle)) == 20


@pytest.mark.parametrize("handle", ["", "..", "../x", "a/b", "A", "-a", "a-", "x" * 64, "a\n"])
def test_what_is_no_name_is_no_handle(handle: str) -> None:
    assert not handles.valid(handle)


def test_settings_come_back_as_they_were_written() -> None:
    assert settings.parse(SETTINGS.text()) == SETTINGS


def test_a_file_system_for_several_nodes_and_unknown_ones_are_refused() -> None:
    for need in (access.Access(shared=True), access.Access(file_system="ntfs")):
        with pytest.raises(InvalidArgument):
            access.check([need], InfraClass("a"))
    with pytest.raises(InvalidArgument):
        access.check([access.Access(shared=True, block=True)], InfraClass("a", shared_block=False))
    # Where nobody may look into the infra cluster, it is tried.
    assert access.check([access.Access(shared=True, block=True)], InfraClass("a")).shared


def test_a_volume_too_small_for_its_file_system_is_refused_when_it_is_made() -> None:
    access.enough(access.Access(file_system="xfs"), 300 * MI)
    access.enough(access.Access(file_system="ext4"), MI)
    with pytest.raises(OutOfRange, match="at least 300 MiB, and 299 MiB are asked for"):
        access.enough(access.Access(file_system="xfs"), 299 * MI)


def test_only_what_carries_both_marks_is_ours() -> None:
    def volume(**labels: str) -> dict[str, Any]:
        return {"metadata": {"name": "x", "labels": labels}}

    assert objects.ours(volume(**{LABEL_INFRA_ID: "id", LABEL_CSI_ROLE: "volume"}), SETTINGS, objects.VOLUME)
    assert not objects.ours(volume(**{LABEL_INFRA_ID: "id"}), SETTINGS, objects.VOLUME)
    assert not objects.ours(volume(**{LABEL_INFRA_ID: "other", LABEL_CSI_ROLE: "volume"}), SETTINGS, objects.VOLUME)
    assert not objects.ours(volume(**{LABEL_INFRA_ID: "id", LABEL_CSI_ROLE: "snapshot"}), SETTINGS, objects.VOLUME)
    assert not objects.ours(None, SETTINGS, objects.VOLUME)


def machine(volumes: list[Any], requests: list[Any] | None = None, status: list[Any] | None = None) -> hotplug.Machine:
    meta = {"name": "m", "labels": {LABEL_INFRA_ID: "id"}}
    vm = {
        "metadata": meta,
        "spec": {"template": {"spec": {"volumes": volumes}}},
        "status": {"volumeRequests": requests or []},
    }
    vmi = {"metadata": meta, "spec": {"volumes": []}, "status": {"phase": "Running", "volumeStatus": status or []}}
    return hotplug.machines([vm], [vmi], "id")["m"]


def test_wishes_that_kubevirt_has_not_acted_on_count() -> None:
    there = [{"name": "v", "dataVolume": {"name": "v", "hotpluggable": True}}]
    assert machine(there).wants("v")
    assert not machine(there, [{"removeVolumeOptions": {"name": "v"}}]).wants("v")
    assert machine([], [{"addVolumeOptions": {"name": "v"}}]).wants("v")


def test_a_disk_that_is_on_its_way_out_is_still_held() -> None:
    going = machine([], status=[{"name": "v", "phase": "Detaching"}])
    assert not going.wants("v") and going.holds("v") and not going.ready("v")


def test_only_a_disk_that_the_machine_keeps_is_ready() -> None:
    def told(phase: str) -> hotplug.Machine:
        return machine([], status=[{"name": "v", "phase": phase}])

    assert told("Ready").ready("v")
    early = ("Pending", "Bound", "AttachedToNode", "MountedToPod", "Detaching", "UnMountedFromPod")
    assert not any(told(phase).ready("v") for phase in early)
    assert not machine([]).ready("v")


def test_a_volume_that_somebody_plugged_in_under_another_name_is_held() -> None:
    assert machine([{"name": "other", "persistentVolumeClaim": {"claimName": "v"}}]).has("v")


def test_machines_of_other_clusters_are_none() -> None:
    vm = {"metadata": {"name": "m", "labels": {LABEL_INFRA_ID: "other"}}}
    assert hotplug.machines([vm], [vm], "id") == {}


def test_disks_are_found_by_both_kinds_of_serial_number(tmp_path: Path) -> None:
    for name, file, content in (
        ("sda", "device/vpd_pg80", b"\x00\x80\x00\x06serial"),
        ("sdb", "device/vpd_pg80", b"\x00\x80\x00\x05other"),
        ("vda", "serial", b"virtio\n"),
        ("sr0", "size", b"0\n"),
    ):
        path = tmp_path / "block" / name / file
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    found = disks.Disks(sys=tmp_path, patience=0.0)
    assert found.find("serial") == Path("/dev/sda")
    assert found.find("virtio") == Path("/dev/vda")
    assert found.find("seria") is None


def test_mounts_are_read_with_their_odd_names_and_the_topmost_last() -> None:
    text = (
        "36 35 98:0 / /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n"
        "37 35 8:16 /sub /data rw - ext4 /dev/sdb rw\n"
        "38 35 8:32 / /data ro - xfs /dev/sdc ro\n"
    )
    first, second, third = mounts.parse(text)
    assert first.point == "/mnt 2" and first.file_system == "ext3"
    assert (second.device, second.root) == ("8:16", "/sub")
    assert (third.device, third.options) == ("8:32", ("ro",))
