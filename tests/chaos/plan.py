"""What a run does, decided beforehand by its seed alone. Pure.

A fault names its victim by what it is; which of several that is, `pick` says, so that the same seed does the same to
the same parts, however many processes there happen to be.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

KILL, FREEZE, CUT, FILL, STOP, SKEW = "kill", "freeze", "cut", "fill", "stop", "skew"
CREATE, EDIT, UPGRADE, DELETE = "create", "edit", "upgrade", "delete"
# How often each comes, of a hundred.
_KINDS = {KILL: 55, FREEZE: 22, CUT: 10, FILL: 5, STOP: 8}
# For how long, in seconds; a kill is over at once.
_LASTS = {
    KILL: (0.0, 0.0),
    FREEZE: (1.0, 15.0),
    CUT: (3.0, 20.0),
    FILL: (5.0, 15.0),
    STOP: (5.0, 25.0),
    SKEW: (10.0, 60.0),
}
_WORDS = {
    KILL: "kill -9",
    FREEZE: "SIGSTOP",
    CUT: "partition",
    FILL: "full disk",
    STOP: "plug pulled",
    SKEW: "wrong clock",
}
_PAUSE = (0.5, 4.0)

# Of the embedded cluster itself, beside its pods.
NODE_PARTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "containerd",
    "kubelet",
    "kube-proxy",
    "registry",
)
# In pods: of hosted control planes, and hcp's own.
POD_PARTS = (
    "hosted etcd",
    "hosted kube-apiserver",
    "hosted kube-controller-manager",
    "hosted kube-scheduler",
    "operator",
    "router",
    "ignition-server",
)
# All that is behind one of them has to wait: frozen together with what waits, it would only be a longer wait.
_NEVER_FROZEN = frozenset({"containerd"})
# A virtual machine's process, and what is done to machines where there are some: every fourth fault is theirs.
MACHINE = "virtual machine"
_OF_MACHINES = {KILL: 50, FREEZE: 25, SKEW: 25}
_SHARE = 0.25
# At a time, besides the one that is there all along.
MOST_CLUSTERS = 3


@dataclass(frozen=True)
class Fault:
    kind: str
    # The part that is killed or frozen, else empty.
    part: str
    # Which of several: the victims are counted and this is taken modulo their number.
    pick: int
    # For how long it lasts.
    seconds: float
    # How long nothing is done afterwards.
    pause: float

    def __str__(self) -> str:
        what = _WORDS[self.kind]
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{what}{f' of {self.part}' if self.part else ''} (#{self.pick}){lasts}"


@dataclass(frozen=True)
class Deed:
    """What users do meanwhile, right before the fault of this number."""

    before: int
    kind: str
    cluster: str


@dataclass(frozen=True)
class Plan:
    seed: int
    faults: tuple[Fault, ...]
    deeds: tuple[Deed, ...]

    @property
    def left(self) -> list[str]:
        """Clusters that are there in the end."""
        gone = {deed.cluster for deed in self.deeds if deed.kind == DELETE}
        return [deed.cluster for deed in self.deeds if deed.kind == CREATE and deed.cluster not in gone]

    @property
    def upgraded(self) -> set[str]:
        return {deed.cluster for deed in self.deeds if deed.kind == UPGRADE}


def plan(seed: int, faults: int, kept: str, *, machines: bool = False) -> Plan:
    """`kept` is the highly available cluster that is there all along; it is edited and upgraded, and never deleted.

    With machines, some of the faults are theirs and the others stay what they are.
    """
    chance = random.Random(seed)
    found = [_fault(chance) for _ in range(faults)]
    deeds = _deeds(chance, faults, kept)
    if machines:
        theirs = random.Random(f"machines {seed}")
        found = [_of_machines(theirs) if theirs.random() < _SHARE else fault for fault in found]
    return Plan(seed, tuple(found), tuple(deeds))


def _of_machines(chance: random.Random) -> Fault:
    (kind,) = chance.choices(list(_OF_MACHINES), list(_OF_MACHINES.values()))
    lasts = round(chance.uniform(*_LASTS[kind]), 1)
    return Fault(kind, MACHINE, chance.randrange(1 << 16), lasts, round(chance.uniform(*_PAUSE), 1))


def _fault(chance: random.Random) -> Fault:
    (kind,) = chance.choices(list(_KINDS), list(_KINDS.values()))
    part = ""
    if kind in (KILL, FREEZE):
        parts = [one for one in (*NODE_PARTS, *POD_PARTS) if kind == KILL or one not in _NEVER_FROZEN]
        part = chance.choice(parts)
    lasts = round(chance.uniform(*_LASTS[kind]), 1)
    return Fault(kind, part, chance.randrange(1 << 16), lasts, round(chance.uniform(*_PAUSE), 1))


def _deeds(chance: random.Random, faults: int, kept: str) -> list[Deed]:
    """A deed about every fourth fault; every kind of deed happens, however short the run is."""
    found: list[Deed] = []
    there: list[str] = []
    upgraded: set[str] = set()
    wanted = [CREATE, UPGRADE, EDIT, DELETE, CREATE]
    step = max(1, faults // max(len(wanted), faults // 4 or 1))
    for at in range(0, faults, step):
        kind = wanted.pop(0) if wanted else chance.choice((CREATE, EDIT, EDIT, UPGRADE, DELETE))
        deed = _deed(chance, at, kind, kept, there, upgraded, len(found))
        if deed is not None:
            found.append(deed)
    return found


def _deed(
    chance: random.Random, at: int, kind: str, kept: str, there: list[str], upgraded: set[str], number: int
) -> Deed | None:
    """None where that cannot be done now."""
    if kind == CREATE:
        if len(there) >= MOST_CLUSTERS:
            return None
        there.append(f"storm-{number}")
        return Deed(at, CREATE, there[-1])
    if kind == EDIT:
        return Deed(at, EDIT, chance.choice([kept, *there]))
    if kind == UPGRADE:
        choice = [name for name in (kept, *there) if name not in upgraded]
        if not choice:
            return None
        upgraded.add(name := chance.choice(choice))
        return Deed(at, UPGRADE, name)
    if not there:
        return None
    return Deed(at, DELETE, there.pop(chance.randrange(len(there))))


def table(counts: dict[str, int], skipped: Sequence[str]) -> str:
    """What was done, for the end of a run."""
    lines = [f"  {count:4} × {name}" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
    return "\n".join([*lines, *(f"  not done: {why}" for why in skipped)])
