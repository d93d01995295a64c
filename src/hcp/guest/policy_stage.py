"""How far a guest is with enforcing NetworkPolicies."""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """What of it is in the guest."""

    OFF = "off"
    ENFORCING = "enforcing"
    # No policy is left; nodes are made free of its rules.
    ENDING = "ending"
