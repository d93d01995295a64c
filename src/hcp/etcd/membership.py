"""Who is a member of an etcd, and what to do next about it: a lost one replaced, one more, or fewer. Pure.

What is decided is written down before it is done (`Record`), and every step looks at the whole again, so that any
process can go on from there. A member that finds no data on its volume starts only when the record lets it in, and
says so until then; that word of its own is the only proof of a loss that is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hcp.etcd.client import Peer

# Members there can be: etcd-0 and so on.
MOST = 3


@dataclass(frozen=True, slots=True)
class Record:
    """What was decided about the members."""

    # Of the StatefulSet.
    replicas: int
    # The members are new and found a cluster together.
    founding: bool = False
    # Who is being let in: on an empty volume, as a learner, then with a vote.
    joining: int | None = None
    # With which members that one may start, by their addresses; nobody else starts without data.
    opened: tuple[str, ...] = ()
    # The number that members are being taken away down to.
    target: int | None = None

    @property
    def settled(self) -> bool:
        return self.joining is None and self.target is None

    @property
    def voters(self) -> int:
        """How many members decide: enough for the rest of the way."""
        if self.target is not None:
            return min(self.target, self.replicas)
        return max(1, self.replicas - (self.joining is not None and self.joining < self.replicas))

    def partition(self, desired: int) -> int:
        """The pod of a single member is rolled when others can do without it: after they have joined."""
        return 1 if desired > 1 and (self.joining is not None or self.replicas < desired) else 0


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. Members are known by the number of their pod."""

    record: Record
    desired: int
    # The address that each of them has, or would have.
    urls: Sequence[str]
    peers: Sequence[Peer]
    # Those that answered, and who of them leads.
    answering: frozenset[int] = frozenset()
    leader: int | None = None
    # Pods that are there, and those that say that they have no data.
    pods: frozenset[int] = frozenset()
    empty: frozenset[int] = frozenset()
    # Volume claims beyond the members that there are.
    claims: frozenset[int] = frozenset()

    @property
    def members(self) -> Mapping[int, Peer]:
        return {self.urls.index(one.url): one for one in self.peers if one.url in self.urls}

    @property
    def voters(self) -> Mapping[int, Peer]:
        return {index: one for index, one in self.members.items() if not one.learner}


@dataclass(frozen=True, slots=True)
class Write:
    """Write a decision down."""

    record: Record


@dataclass(frozen=True, slots=True)
class Add:
    index: int


@dataclass(frozen=True, slots=True)
class Promote:
    index: int
    peer: Peer


@dataclass(frozen=True, slots=True)
class Remove:
    index: int
    peer: Peer
    # It is replaced, not given up.
    lost: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class HandOver:
    """Another one shall lead."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Restart:
    """Of a pod that may start now: it would wait for its next turn."""

    index: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete the claim of a volume that no member has any more."""

    index: int


@dataclass(frozen=True, slots=True)
class Wait:
    """For what others do; `why` is told when it may take long."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    pass


Step = Write | Add | Promote | Remove | HandOver | Restart | Drop | Wait | Done


def plan(seen: Seen) -> Step:
    """The next step; nothing of what was begun is left half done for something newer."""
    record = seen.record
    if strangers := [one.name or one.url for one in seen.peers if one.url not in seen.urls]:
        return Wait(f"members that no pod of this cluster is are left to whoever added them: {', '.join(strangers)}")
    if record.target is not None:
        return _shrink(seen, record.target)
    if record.joining is not None and record.joining >= seen.desired:
        return Write(replace(record, joining=None, opened=(), target=seen.desired))
    if record.joining is not None:
        return _join(seen, record.joining)
    if lost := sorted(index for index in seen.empty if index < min(record.replicas, seen.desired)):
        return Write(replace(record, founding=False, joining=lost[0], opened=()))
    if away := _away(seen, min(record.replicas, seen.desired)):
        return Wait(f"waiting for {away}" if record.replicas != seen.desired else "")
    if record.replicas < seen.desired:
        return _grow(seen, record.replicas)
    if record.replicas > seen.desired:
        return Write(replace(record, founding=False, opened=(), target=seen.desired))
    return Done()


def _away(seen: Seen, number: int) -> str:
    """Who of the first so many is no member that votes and answers."""
    return named(index for index in range(number) if index not in seen.voters or index not in seen.answering)


def _grow(seen: Seen, index: int) -> Step:
    """One more. A volume of that name holds what a former member left: it would not be let in with that."""
    if index in seen.pods:
        return Wait()
    if index in seen.claims and index not in seen.members:
        return Drop(index)
    return Write(replace(seen.record, founding=False, joining=index, opened=()))


def _join(seen: Seen, index: int) -> Step:
    record, peer = seen.record, seen.members.get(index)
    if peer is not None and peer.name and index in seen.empty:
        # It was one and has lost everything. With its old name and no memory it could elect a leader that lacks what
        # was acknowledged: it must be somebody else when it comes back.
        return _others(seen, index) or Remove(index, peer, lost=True)
    if peer is None:
        return _others(seen, index) or Add(index)
    if not peer.name:
        opened = tuple(sorted(one.url for one in seen.peers))
        if record.opened != opened or record.replicas <= index:
            return Write(replace(record, opened=opened, replicas=max(record.replicas, index + 1)))
        return Restart(index) if index in seen.empty else Wait()
    if record.opened:
        # Before it votes: from now on it starts with its data, or not at all.
        return Write(replace(record, opened=()))
    return Promote(index, peer) if peer.learner else Write(replace(record, joining=None))


def _others(seen: Seen, index: int) -> Wait | None:
    """Why members cannot be changed: one that votes is away."""
    missing = named(other for other in seen.voters if other != index and other not in seen.answering)
    return Wait(f"waiting for {missing}") if missing or not set(seen.voters) - {index} else None


def _shrink(seen: Seen, target: int) -> Step:
    record = seen.record
    if surplus := {index: one for index, one in seen.members.items() if index >= target}:
        if away := _away(seen, target):
            return Wait(f"waiting for {away}")
        # One that is away first: while it counts, the others are fewer than they need to be.
        index = max(surplus, key=lambda one: (one not in seen.answering, one))
        if seen.leader is not None and seen.leader >= target:
            return HandOver(seen.voters[0])
        return Remove(index, surplus[index])
    if record.replicas > target:
        return Write(replace(record, replicas=target))
    if any(index >= target for index in seen.pods):
        return Wait()
    if left := [index for index in seen.claims if index >= target]:
        return Drop(max(left))
    return Write(replace(record, target=None))


def named(indexes: Iterable[int]) -> str:
    """The names of members in a sentence."""
    found = [f"etcd-{index}" for index in sorted(indexes)]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def told(record: Record, desired: int, empty: Sequence[int] = ()) -> str:
    """What is going on, for people; it stays the same for as long as that."""
    if record.target is not None:
        return f"members are taken away until {record.target} is left"
    if record.replicas < desired or (record.joining is not None and record.joining not in empty):
        grows = f"etcd grows to {desired} members" if record.replicas < desired else ""
        who = "" if record.joining is None else named([record.joining])
        joins = f"{who} joins, without a vote until it has all data" if who else ""
        return "; ".join(filter(None, (grows, joins)))
    if lost := sorted({*empty, *([] if record.joining is None else [record.joining])}):
        return f"{named(lost)} lost its data and is replaced"
    return f"etcd shrinks to {desired} member" if record.replicas > desired else ""
