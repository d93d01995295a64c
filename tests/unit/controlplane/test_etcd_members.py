"""What members of etcd start with, how it is written down and read, and what a pod says of its data."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.support.unit.controlplane import params

from hcp.controlplane import etcd, etcd_members, etcd_restore
from hcp.controlplane.etcd_members import empty, first, founded, manifest, read
from hcp.etcd.membership import Record

MANY, ONE = params(highly_available=True), params()
URLS = tuple(etcd.member_url(MANY, index) for index in range(3))
WORDS = '{"level":"fatal","msg":"discovery failed","error":"couldn\'t find local name \\"etcd-1\\" in the initial"}'


def live(p: Any, ready: int = 0) -> dict[str, Any]:
    return {**etcd.stateful_set(p, "x"), "status": {"readyReplicas": ready}}


def old_form(ready: int) -> dict[str, Any]:
    """Of three members that name each other, as an operator without records made it."""
    made = copy.deepcopy(live(MANY, ready))
    command = made["spec"]["template"]["spec"]["containers"][0]["command"]
    names = ",".join(f"etcd-{i}={url}" for i, url in enumerate(URLS))
    command[:] = [f"--initial-cluster={names}" if w.startswith("--initial-cluster=") else w for w in command]
    return made


@pytest.mark.parametrize(
    "record",
    [
        Record(3, founding=True),
        Record(3),
        Record(1, joining=1),
        Record(2, joining=1, opened=tuple(sorted(URLS[:2]))),
        Record(3, target=1),
    ],
)
def test_what_is_written_is_read_back(record: Record) -> None:
    joiner = URLS[record.joining] if record.joining is not None else ""
    assert read(manifest(MANY, record, joiner)) == record


@pytest.mark.parametrize("data", [None, {}, {"replicas": "many"}, {"replicas": "3", "members": "nonsense"}])
def test_what_nobody_of_us_wrote_is_no_record(data: Any) -> None:
    assert read(None if data is None else {"data": data}) is None


def test_only_one_member_may_start_without_data_once_the_cluster_is_founded() -> None:
    def names(record: Record) -> set[str]:
        members = manifest(MANY, record, URLS[1])["data"]["members"]
        return {one.partition("=")[0] for one in members.split(",")}

    assert names(Record(3, founding=True)) == {"etcd-0", "etcd-1", "etcd-2"}
    assert not {"etcd-0", "etcd-1", "etcd-2"} & names(Record(3))
    assert names(Record(3, joining=1, opened=tuple(sorted(URLS)))) & {"etcd-0", "etcd-1", "etcd-2"} == {"etcd-1"}


def test_a_single_member_is_started_as_ever() -> None:
    words = etcd.stateful_set(ONE, "x")["spec"]
    command = words["template"]["spec"]["containers"][0]["command"]
    assert f"--initial-cluster=etcd-0={URLS[0]}" in command
    assert "--initial-cluster-state=new" in command
    assert etcd.MEMBERS_CONFIG not in str(words)
    assert words["updateStrategy"] == {"type": "RollingUpdate"}
    assert "--initial-cluster-state" not in str(etcd_restore.filler(params(etcd_snapshot_url="https://x"), "hcp:1"))


def test_etcd_stays_as_that_of_many_until_one_is_left() -> None:
    def template(p: Any) -> Any:
        return etcd.stateful_set(p, "x")["spec"]["template"]

    assert template(params(etcd_members=3)) == template(MANY)
    assert template(params(etcd_members=1)) == template(ONE)
    growing = etcd.stateful_set(params(highly_available=True, etcd_members=1, etcd_partition=1), "x")["spec"]
    assert (growing["replicas"], growing["updateStrategy"]["rollingUpdate"]) == (1, {"partition": 1})
    assert growing["template"] == template(MANY)


def test_a_cluster_without_a_record_is_new_had_one_member_or_has_all() -> None:
    assert first(MANY, None) == Record(3, founding=True)
    assert first(MANY, live(ONE, 1)) == Record(1)
    assert first(MANY, old_form(3)) == first(MANY, old_form(2)) == Record(3)
    assert first(MANY, old_form(1)) == Record(3, founding=True), "it may not be founded yet"
    assert first(MANY, live(MANY, 0)) == Record(3), "somebody has deleted the record"


def test_who_sleeps_is_counted_by_what_it_was() -> None:
    asleep = live(ONE)
    asleep["spec"]["replicas"] = 0
    assert first(MANY, asleep) == Record(1)


def test_a_cluster_is_founded_when_all_have_started() -> None:
    assert not founded(Record(3, founding=True), live(MANY, 2))
    assert founded(Record(3, founding=True), live(MANY, 3))
    assert not founded(Record(3), live(MANY, 3))


def pod(p: Any, **status: Any) -> dict[str, Any]:
    spec = etcd.stateful_set(p, "x")["spec"]["template"]["spec"]
    return {"metadata": {"name": "etcd-1"}, "spec": spec, "status": {"containerStatuses": [{"name": "etcd", **status}]}}


def test_a_pod_without_data_says_so_itself() -> None:
    ended = {"terminated": {"message": WORDS}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert empty(pod(MANY, state=waiting, lastState=ended))
    assert empty(pod(MANY, state=ended))
    assert not empty(pod(MANY, state={"running": {}}, lastState=ended)), "it was let in meanwhile"
    assert not empty(pod(MANY, state=waiting, lastState={"terminated": {"message": "panic: corrupt"}}))
    assert not empty(pod(ONE, state=waiting, lastState=ended)), "it could not be let in"
    assert not empty({"metadata": {"name": "etcd-1"}})


def test_pods_and_claims_have_the_number_of_their_member() -> None:
    assert etcd_members.index_of({"metadata": {"name": "etcd-2"}}) == 2
    assert etcd_members.index_of({"metadata": {"name": "etcd-defrag"}}) is None
    assert etcd_members.index_of({"metadata": {"name": "etcd-7"}}) is None
    assert etcd_members.claim(2) == "data-etcd-2"


def test_a_member_of_several_leaves_its_service_before_it_ends() -> None:
    def ends(p: Any, *, slowly: bool = True) -> Any:
        made = etcd.stateful_set(p, "x", leaves_slowly=slowly)
        return made["spec"]["template"]["spec"]["containers"][0].get("lifecycle")

    several = params(highly_available=True, same_node_first=True)
    assert ends(several) == {"preStop": {"sleep": {"seconds": 5}}}
    assert ends(several, slowly=False) is None
    assert ends(params(highly_available=True)) is None, "the management cluster may be too old for it"
    assert ends(params(same_node_first=True)) is None, "of one member nobody has anything"
