"""What a process reads out of the Leases of all."""

from __future__ import annotations

from typing import Any

from hcp.operator.leases import (
    ANNOTATION_SHARDS,
    MEMBER,
    Seen,
    member_name,
)
from hcp.runtime.shards import LEASE, lease_name, shard_number

DURATION = 24


def lease(name: str, holder: str, shards: int = 3, version: int = 1) -> dict[str, Any]:
    notes = {ANNOTATION_SHARDS: str(shards)} if shards > 1 else {}
    return {
        "metadata": {"name": name, "annotations": notes, "resourceVersion": str(version)},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": DURATION},
    }


def seen(*leases: dict[str, Any], at: float = 0.0) -> Seen:
    made = Seen()
    for one in leases:
        made.take_in(one, at)
    return made


def announced(*members: str, shards: int = 3) -> list[dict[str, Any]]:
    return [lease(member_name(member), member, shards) for member in members]


def test_the_first_shard_has_the_lease_of_an_operator_that_shares_nothing() -> None:
    assert (lease_name(0), lease_name(2)) == (LEASE, f"{LEASE}-2")
    assert [shard_number(lease_name(n)) for n in (0, 2, 31)] == [0, 2, 31]
    assert shard_number("controller-leader-election-capk") is None
    assert shard_number(f"{MEMBER}a") is None


def test_a_process_announces_itself_under_a_name_that_a_lease_may_have() -> None:
    assert member_name("My.Laptop_1b2c") == f"{MEMBER}my-laptop-1b2c"


def test_leases_of_others_in_the_namespace_mean_nothing() -> None:
    assert seen(lease("controller-leader-election-capk", "capk")).leases == {}


def test_whoever_is_alone_plans_to_hold_all() -> None:
    assert seen(*announced("a")).view(3, "a", 1).mine() == {0, 1, 2}


def test_members_see_the_same_plan() -> None:
    known = seen(*announced("a", "b", "c"), lease(LEASE, "b"), lease(lease_name(1), "b"))
    plans = [known.view(3, me, 1).plan() for me in "abc"]
    assert plans[0] == plans[1] == plans[2] == {0: "b", 1: "a", 2: "c"}


def test_a_shard_is_taken_only_once_it_is_free() -> None:
    known = seen(*announced("a", "b"), lease(LEASE, "b"), lease(lease_name(1), "b"))
    view = known.view(2 + 1, "a", 1)
    assert view.plan()[2] == "a"
    assert view.free(2)
    assert not view.free(1)


def test_a_lease_that_is_not_renewed_runs_out_by_our_own_clock() -> None:
    known = seen(*announced("a", "b"), lease(LEASE, "b"), at=100)
    assert known.next_end("a", 110) == 100 + DURATION - 110
    assert known.view(3, "a", 100 + DURATION - 1).holders == {0: "b"}
    late = known.view(3, "a", 100 + DURATION)
    assert (late.members, late.holders, late.mine()) == (("a",), {}, {0, 1, 2})
    known.take_in(lease(LEASE, "b", version=2), 120)
    assert known.view(3, "a", 100 + DURATION).holders == {0: "b"}


def test_an_older_version_of_a_lease_does_not_replace_a_newer_one() -> None:
    known = seen(lease(LEASE, "", version=2))
    known.take_in(lease(LEASE, "b", version=1), 5)
    assert known.view(3, "a", 5).holders == {}


def test_a_process_that_began_anew_takes_what_it_still_holds() -> None:
    view = seen(*announced("a"), lease(LEASE, "a")).view(3, "a", 10_000)
    assert view.free(0)
    assert 0 in view.mine()


def test_another_number_of_shards_is_a_stranger_and_no_member() -> None:
    known = seen(*announced("a"), *announced("b", shards=5), lease(lease_name(4), "b", shards=5))
    view = known.view(3, "a", 1)
    assert (view.members, view.strangers, view.stranger_leads) == (("a",), ("b",), False)


def test_while_a_stranger_has_the_first_shard_nothing_is_taken_and_all_is_given_away() -> None:
    """An operator that shares nothing has everything."""
    known = seen(*announced("a"), lease(LEASE, "old", shards=1), lease(lease_name(1), "a"))
    assert known.view(3, "a", 1).mine() == set()
    assert known.view(1, "old", 1).strangers == ("a",)
    assert known.view(3, "a", DURATION).mine() == {0, 1, 2}


def test_a_lease_that_was_given_back_says_nothing_about_numbers() -> None:
    known = seen(*announced("a"), lease(LEASE, "", shards=5))
    assert known.view(3, "a", 1).strangers == ()
    assert known.view(3, "a", 1).mine() == {0, 1, 2}


def test_announcements_of_others_that_ran_out_are_left_behind() -> None:
    known = seen(*announced("a", "b"), lease(LEASE, "b"))
    assert known.left_behind("a", DURATION - 1) == []
    assert known.left_behind("a", DURATION) == [member_name("b")]
