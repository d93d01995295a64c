"""A new encryption key takes over in steps, and at no step is a key missing that something is stored under."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.unit.controlplane import params

from hcp.controlplane import encryption as e

A, B, C = (bytes([n]) * 32 for n in (1, 2, 3))


def step(live: list[bytes], active: bytes, *, rolled_out: bool = True, rewritten: bool = False) -> e.Step:
    return e.next_step(live, active, (), rolled_out=rolled_out, rewritten=rewritten)


def test_a_new_cluster_begins_with_its_key() -> None:
    assert step([], A) == e.Step((A,), e.DONE)
    assert step([A], A) == e.Step((A,), e.DONE)


def test_read_then_write_then_rewrite_then_drop() -> None:
    assert step([A], B) == e.Step((A, B), e.READ)
    assert step([A, B], B, rolled_out=False) == e.Step((A, B), e.READ)
    assert step([A, B], B) == e.Step((B, A), e.WRITE)
    assert step([B, A], B, rolled_out=False) == e.Step((B, A), e.WRITE)
    assert step([B, A], B) == e.Step((B, A), e.REWRITE)
    assert step([B, A], B, rewritten=True) == e.Step((B,), e.DONE)


def test_a_third_key_in_the_middle_loses_none() -> None:
    assert step([B, A], C) == e.Step((B, C, A), e.READ)


def test_a_backup_key_is_read_with_for_as_long_as_it_is_named() -> None:
    assert e.next_step([A], A, (B,), rolled_out=True, rewritten=False) == e.Step((A, B), e.DONE)
    assert e.next_step([A, B], A, (B,), rolled_out=True, rewritten=False) == e.Step((A, B), e.DONE)


@given(
    st.lists(st.tuples(st.sampled_from([A, B, C]), st.booleans(), st.booleans()), max_size=12),
)
def test_what_something_may_be_stored_under_can_always_be_read(passes: list[tuple[bytes, bool, bool]]) -> None:
    keys: tuple[bytes, ...] = (A,)
    stored = {A}
    for active, rolled_out, rewritten in passes:
        if rolled_out and rewritten and keys[0] == active:
            stored = {active}
        done = rewritten and stored == {active} and rolled_out
        keys = e.next_step(keys, active, (), rolled_out=rolled_out, rewritten=done).keys
        assert stored <= set(keys)
        stored = stored | {keys[0]}


def test_keys_are_read_back_from_the_configuration() -> None:
    made = e.manifest(params(), (B, A), 7)
    assert e.keys_of(made) == [B, A]
    assert e.changed_at(made) == 7
    assert e.keys_of(None) == []
    assert e.changed_at(e.manifest(params(), (A,), -1)) == -1
