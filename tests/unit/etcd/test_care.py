"""When an etcd is defragmented, in which order, and when an alarm may end."""

from __future__ import annotations

from dataclasses import replace

from hcp.etcd import maintenance
from hcp.etcd.client import Member, member

MIB = 1024**2
CALM = Member("https://etcd-0", "1", leader=False, revision=9, size=100 * MIB, used=95 * MIB, quota=1000 * MIB)


def test_an_answer_is_read_with_its_alarms() -> None:
    answer = {
        "header": {"member_id": "7", "revision": "23"},
        "leader": "7",
        "dbSize": "18079744",
        "dbSizeInUse": "11055104",
        "dbSizeQuota": "16777216",
        "errors": ["memberID:7 alarm:NOSPACE "],
    }
    found = member("https://x", answer)
    assert found.leader and found.full and found.revision == 23
    assert found.waste == 18079744 - 11055104
    assert not member("https://x", {}).full


def test_a_pause_is_taken_only_for_enough_room() -> None:
    assert not maintenance.worthwhile(CALM)
    assert maintenance.worthwhile(replace(CALM, used=60 * MIB))
    # A fifth of little is little.
    assert not maintenance.worthwhile(replace(CALM, size=20 * MIB, used=10 * MIB))
    # Near the quota every bit counts.
    assert maintenance.worthwhile(replace(CALM, size=14 * MIB, used=5 * MIB, quota=16 * MIB))


def test_the_leader_comes_last_and_nobody_before_the_date() -> None:
    loose = replace(CALM, used=40 * MIB)
    members = [replace(loose, url="a", leader=True), replace(loose, url="b"), replace(CALM, url="c")]
    assert [m.url for m in maintenance.order(members, due=True)] == ["b", "a"]
    assert maintenance.order(members, due=False) == []
    pressed = [replace(m, quota=110 * MIB) for m in members]
    assert [m.url for m in maintenance.order(pressed, due=False)] == ["b", "a"]


def test_an_alarm_ends_only_with_room_on_every_member() -> None:
    assert maintenance.has_room([CALM, CALM])
    assert not maintenance.has_room([CALM, replace(CALM, size=960 * MIB)])
    assert maintenance.in_use([replace(CALM, used=930 * MIB)]) == "90%"
