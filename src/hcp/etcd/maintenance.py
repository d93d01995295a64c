"""When an etcd needs what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hcp.etcd.client import Member

MIB = 1024**2
# A pause of the member is worth it for this much, and for this share of the file.
WORTH_BYTES = 16 * MIB
WORTH_SHARE = 0.2
# Above this share of the quota nobody waits for the next date.
PRESSURE = 0.8
# An alarm is ended when the file is well below the quota; with less room the next writes would raise it again.
HEALTHY = 0.95


def worthwhile(member: Member) -> bool:
    """Whether defragmentation gives back enough for the pause it costs."""
    return member.waste >= max(1, member.size * WORTH_SHARE) and (member.waste >= WORTH_BYTES or pressing(member))


def pressing(member: Member) -> bool:
    """Whether the file is so near its quota that waiting for the next date would be a risk."""
    return bool(member.quota) and member.size >= member.quota * PRESSURE


def order(members: Iterable[Member], *, due: bool) -> list[Member]:
    """Which members to defragment, in this order: the leader last, so that leadership moves once at most."""
    chosen = [m for m in members if worthwhile(m) and (due or m.full or pressing(m))]
    return sorted(chosen, key=lambda m: (m.leader, m.url))


def has_room(members: Sequence[Member]) -> bool:
    """Whether every member is far enough below its quota to take writes again."""
    return all(m.size < m.quota * HEALTHY for m in members if m.quota)


def in_use(members: Sequence[Member]) -> str:
    """How much of the quota live data takes, coarse enough not to change with every object."""
    shares = [m.used / m.quota for m in members if m.quota]
    return f"{round(max(shares, default=0) * 10) * 10}%"
