"""What a seed decides: the same for the same seed, everything in a long run, and only what can be done."""

from __future__ import annotations

import pytest
from tests.chaos.plan import (
    CREATE,
    CUT,
    DELETE,
    EDIT,
    FILL,
    FREEZE,
    KILL,
    MACHINE,
    MOST_CLUSTERS,
    NODE_PARTS,
    POD_PARTS,
    SKEW,
    STOP,
    UPGRADE,
    plan,
    table,
)

SEEDS = range(40)


def test_a_seed_decides_everything() -> None:
    assert plan(7, 200, "kept") == plan(7, 200, "kept")
    assert plan(7, 200, "kept") != plan(8, 200, "kept")


def test_a_longer_run_begins_with_the_same_faults() -> None:
    assert plan(7, 200, "kept").faults[:20] == plan(7, 20, "kept").faults


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_run_pulls_every_kind_of_plug(seed: int) -> None:
    faults = plan(seed, 200, "kept").faults
    assert len(faults) == 200
    assert {fault.kind for fault in faults} == {KILL, FREEZE, CUT, FILL, STOP}
    assert all(bool(fault.part) == (fault.kind in (KILL, FREEZE)) for fault in faults)
    assert all(fault.seconds == 0 for fault in faults if fault.kind == KILL)
    assert all(0 < fault.seconds <= 25 for fault in faults if fault.kind != KILL)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_there_are_machines_some_faults_are_theirs_and_the_others_the_same(seed: int) -> None:
    without, given = plan(seed, 200, "kept"), plan(seed, 200, "kept", machines=True)
    assert given == plan(seed, 200, "kept", machines=True)
    assert given.deeds == without.deeds
    theirs = [fault for fault in given.faults if fault.part == MACHINE]
    assert {fault.kind for fault in theirs} == {KILL, FREEZE, SKEW}
    assert all(a == b for a, b in zip(given.faults, without.faults, strict=True) if a.part != MACHINE)


def test_over_several_runs_every_part_is_killed() -> None:
    faults = [fault for seed in SEEDS for fault in plan(seed, 200, "kept").faults]
    assert {fault.part for fault in faults if fault.kind == KILL} == {*NODE_PARTS, *POD_PARTS}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", [5, 20, 200])
def test_users_do_everything_and_nothing_to_a_cluster_that_is_not_there(seed: int, faults: int) -> None:
    decided = plan(seed, faults, "kept")
    there: set[str] = {"kept"}
    upgraded: set[str] = set()
    assert {deed.kind for deed in decided.deeds} == {CREATE, EDIT, UPGRADE, DELETE}
    for deed in decided.deeds:
        assert 0 <= deed.before < faults
        if deed.kind == CREATE:
            assert deed.cluster not in there
            there.add(deed.cluster)
        else:
            assert deed.cluster in there
        if deed.kind == UPGRADE:
            assert deed.cluster not in upgraded
            upgraded.add(deed.cluster)
        if deed.kind == DELETE:
            assert deed.cluster != "kept"
            there.remove(deed.cluster)
        assert len(there) <= MOST_CLUSTERS + 1
    assert {"kept", *decided.left} == there
    assert [deed.before for deed in decided.deeds] == sorted(deed.before for deed in decided.deeds)


def test_what_was_done_is_told_with_what_could_not_be() -> None:
    told = table({"kill etcd": 3, "stop": 5}, ["full disk: no room"])
    assert told.splitlines() == ["     5 × stop", "     3 × kill etcd", "  not done: full disk: no room"]
