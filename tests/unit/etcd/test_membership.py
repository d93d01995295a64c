"""What is done next about the members of an etcd, and that it comes to an end from wherever it was broken off."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.etcd import membership as m
from hcp.etcd.client import Peer

URLS = [f"https://etcd-{index}" for index in range(m.MOST)]
WHOLE = m.Record(3)


def voter(index: int) -> Peer:
    return Peer(f"id-{index}", URLS[index], f"etcd-{index}")


def seen(record: m.Record = WHOLE, desired: int = 3, **changes: object) -> m.Seen:
    everybody = frozenset(range(record.replicas))
    base = m.Seen(
        record, desired, URLS, [voter(i) for i in range(record.replicas)], everybody, leader=0, pods=everybody
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def without(*away: int) -> frozenset[int]:
    return frozenset(range(3)) - set(away)


def test_nothing_is_done_to_a_cluster_that_is_whole() -> None:
    assert m.plan(seen()) == m.Done()
    assert m.told(WHOLE, 3) == ""


def test_a_member_that_is_away_is_waited_for() -> None:
    assert m.plan(seen(answering=without(1))) == m.Wait()


def test_a_member_is_replaced_only_by_its_own_word() -> None:
    lost = seen(answering=without(1), empty=frozenset({1}))
    assert m.plan(lost) == m.Write(m.Record(3, joining=1))
    assert "etcd-1 lost its data" in m.told(lost.record, 3, [1])


def test_the_lost_one_goes_before_it_comes_back_as_another() -> None:
    record = m.Record(3, joining=1)
    gone = seen(record, answering=without(1), empty=frozenset({1}))
    assert m.plan(gone) == m.Remove(1, voter(1), lost=True)
    rest = [voter(0), voter(2)]
    assert m.plan(replace(gone, peers=rest)) == m.Add(1)
    added = replace(gone, peers=[*rest, Peer("new", URLS[1], learner=True)])
    step = m.plan(added)
    assert step == m.Write(replace(record, opened=tuple(URLS)))
    opened = replace(added, record=step.record)
    assert m.plan(opened) == m.Restart(1)
    assert m.plan(replace(opened, empty=frozenset())) == m.Wait()
    started = replace(opened, empty=frozenset(), peers=[*rest, Peer("new", URLS[1], "etcd-1", learner=True)])
    # The door is closed before it gets a vote.
    assert m.plan(started) == m.Write(record)
    assert m.plan(replace(started, record=record)) == m.Promote(1, started.peers[-1])
    votes = replace(started, record=record, peers=[*rest, Peer("new", URLS[1], "etcd-1")])
    assert m.plan(votes) == m.Write(WHOLE)


def test_without_the_others_nobody_is_removed() -> None:
    lost = seen(m.Record(3, joining=1), answering=without(1, 2), empty=frozenset({1}))
    assert m.plan(lost) == m.Wait("waiting for etcd-2")


def test_a_single_member_is_never_replaced() -> None:
    alone = seen(m.Record(1, joining=0), 1, answering=frozenset(), empty=frozenset({0}))
    assert isinstance(m.plan(alone), m.Wait)


def test_growing_waits_for_who_is_there_and_takes_old_volumes_away() -> None:
    one = seen(m.Record(1))
    assert m.plan(replace(one, answering=frozenset())) == m.Wait("waiting for etcd-0")
    assert m.plan(replace(one, claims=frozenset({1, 2}))) == m.Drop(1)
    assert m.plan(replace(one, pods=frozenset({0, 1}), claims=frozenset({1}))) == m.Wait()
    assert m.plan(one) == m.Write(m.Record(1, joining=1))


def test_shrinking_moves_the_leader_and_takes_the_dead_first() -> None:
    begun = m.plan(seen(desired=1))
    assert begun == m.Write(m.Record(3, target=1))
    three = seen(m.Record(3, target=1), 1)
    assert m.plan(replace(three, leader=2)) == m.HandOver(voter(0))
    assert m.plan(three) == m.Remove(2, voter(2))
    assert m.plan(replace(three, answering=without(1))) == m.Remove(1, voter(1))
    assert m.plan(replace(three, answering=without(0))) == m.Wait("waiting for etcd-0")
    one = replace(three, peers=[voter(0)])
    assert m.plan(one) == m.Write(m.Record(1, target=1))
    shrunk = replace(one, record=m.Record(1, target=1))
    assert m.plan(shrunk) == m.Wait()
    left = replace(shrunk, pods=frozenset({0}), claims=frozenset({1, 2}))
    assert m.plan(left) == m.Drop(2)
    assert m.plan(replace(left, claims=frozenset())) == m.Write(m.Record(1))


def test_members_of_somebody_else_are_left_alone() -> None:
    stranger = Peer("x", "https://elsewhere", "mine")
    step = m.plan(seen(peers=[*(voter(i) for i in range(3)), stranger], empty=frozenset({1})))
    assert isinstance(step, m.Wait)
    assert "mine" in step.why


@pytest.mark.parametrize(
    ("record", "voters"),
    [(m.Record(3), 3), (m.Record(3, joining=1), 2), (m.Record(1, joining=1), 1), (m.Record(3, target=1), 1)],
)
def test_a_learner_is_no_part_of_the_majority(record: m.Record, voters: int) -> None:
    assert record.voters == voters


def test_the_first_pod_keeps_its_template_until_others_can_do_without_it() -> None:
    growing = [m.Record(1), m.Record(1, joining=1), m.Record(2), m.Record(2, joining=2), m.Record(3, joining=2)]
    assert [one.partition(3) for one in growing] == [1] * 5
    assert m.Record(3).partition(3) == m.Record(3, target=1).partition(1) == m.Record(1).partition(1) == 0


@dataclass
class World:
    """An etcd with the pods and volumes of its StatefulSet, that does what it is told and keeps to etcd's rules."""

    record: m.Record
    peers: list[Peer]
    data: dict[int, str] = field(default_factory=dict)
    leader: int = 0
    count: int = 0

    def look(self, desired: int) -> m.Seen:
        """Pods follow the record; one with data of a member runs, and one without starts if it may."""
        for index in range(self.record.replicas):
            if index not in self.data:
                self.start(index)
        pods = range(self.record.replicas)
        known = {one.id for one in self.peers}
        running = frozenset(i for i in pods if self.data.get(i) in known)
        if self.leader not in running:
            self.leader = min(running)
        return m.Seen(
            self.record,
            desired,
            URLS,
            list(self.peers),
            running,
            self.leader,
            frozenset(pods),
            frozenset(i for i in pods if i not in self.data),
            frozenset(self.data) - set(pods),
        )

    def start(self, index: int) -> None:
        peer = next((one for one in self.peers if one.url == URLS[index]), None)
        if peer is None or self.record.joining != index or not self.record.opened:
            return
        assert not peer.name, "nobody starts again as one who had data"
        assert set(self.record.opened) == {one.url for one in self.peers}
        self.data[index] = peer.id
        self.peers[self.peers.index(peer)] = replace(peer, name=f"etcd-{index}")

    def do(self, step: m.Step) -> None:
        match step:
            case m.Write(record):
                assert record != self.record, "nothing is written twice"
                self.record = record
            case m.Add(index):
                self.count += 1
                assert not any(one.learner for one in self.peers), "etcd takes one learner at a time"
                self.peers.append(Peer(f"new-{self.count}", URLS[index], learner=True))
            case m.Promote(index, peer):
                assert not self.record.opened
                self.peers[self.peers.index(peer)] = replace(peer, learner=False)
            case m.Remove(index, peer):
                self.peers.remove(peer)
                alive = [one for one in self.peers if not one.learner and one.id in self.data.values()]
                voters = [one for one in self.peers if not one.learner]
                assert len(alive) > len(voters) // 2, "a majority stays"
                assert index != self.leader, "who leads has handed over before"
            case m.HandOver(peer):
                self.leader = URLS.index(peer.url)
            case m.Drop(index):
                assert index >= self.record.replicas
                del self.data[index]


@given(st.lists(st.tuples(st.sampled_from(["edit", "lose", "go"]), st.integers(0, 40)), max_size=12))
def test_whatever_happens_on_the_way_it_ends_with_the_members_that_are_wanted(events: list[tuple[str, int]]) -> None:
    world = World(m.Record(3), [voter(i) for i in range(3)], {i: f"id-{i}" for i in range(3)})
    desired = 3

    def go(steps: int) -> bool:
        for _ in range(steps):
            step = m.plan(world.look(desired))
            if isinstance(step, m.Done):
                return True
            world.do(step)
        return False

    for kind, number in events:
        if kind == "edit":
            desired = 1 if desired == 3 else 3
        elif kind == "lose":
            # What leaves a majority: with fewer it is for people.
            voting = [one for one in world.peers if not one.learner]
            index = number % 3
            others = [one for one in voting if one.url != URLS[index] and one.id in world.data.values()]
            if len(others) > len(voting) // 2 and desired == 3:
                world.data.pop(index, None)
        else:
            go(number)
    assert go(200), world
    assert world.record == m.Record(desired)
    assert sorted(one.url for one in world.peers) == URLS[:desired]
    assert not any(one.learner for one in world.peers)
    assert sorted(world.data) == list(range(desired)), "no volume is left over"
