"""How far the tour is, and about how long the rest takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hcp.local.demo.plan import Step
from hcp.payload.estimates import to_make
from hcp.payload.progress import about


@dataclass(frozen=True)
class Position:
    """A step of the tour by its number, from 0."""

    number: int
    steps: Sequence[Step]

    def heading(self, step: Step) -> str:
        """2/8 The operator (about a minute, 7 min left in all)."""
        rest = self.steps[self.number :]
        parts = {name for other in rest for name in other.parts}
        mine = step.typical + to_make(step.parts)
        whole = sum(other.typical for other in rest) + to_make(parts)
        left = f", {about(whole)} left in all" if len(rest) > 1 else ""
        return f"{self.number + 1}/{len(self.steps)} {step.title} (about {about(mine)}{left})"
