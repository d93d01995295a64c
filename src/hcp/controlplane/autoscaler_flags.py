"""`spec.autoscaling` of a HostedCluster in the words of cluster-autoscaler. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.names import LABEL_NODEPOOL
from hcp.runtime import durations

_EXPANDERS = {"LeastWaste": "least-waste", "Priority": "priority", "Random": "random"}
_DEFAULT_EXPANDERS = ("Priority", "LeastWaste")
# Pools differ by these and are alike all the same.
_IGNORED_LABELS = (LABEL_NODEPOOL,)
# In percent; the autoscaler's own default is another one.
_FREE_DIFFERENCE = 10
_SCALE_DOWN = {
    "delayAfterAddSeconds": "scale-down-delay-after-add",
    "delayAfterDeleteSeconds": "scale-down-delay-after-delete",
    "delayAfterFailureSeconds": "scale-down-delay-after-failure",
    "unneededDurationSeconds": "scale-down-unneeded-time",
}
_NUMBERS = {
    "maxNodesTotal": "max-nodes-total",
    "maxPodGracePeriod": "max-graceful-termination-sec",
    "podPriorityThreshold": "expendable-pods-priority-cutoff",
}


def expanders(wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """How a pool is chosen, the first that decides wins; one that is named twice is asked once."""
    named = wanted.get("expanders") or _DEFAULT_EXPANDERS
    return tuple(dict.fromkeys(_EXPANDERS[one] for one in named if one in _EXPANDERS))


def flags(wanted: Mapping[str, Any]) -> list[str]:
    """One flag for each field that is set, in a fixed order."""
    found = [f"--expander={','.join(expanders(wanted))}", *_removing(wanted)]
    found += [f"--{flag}={int(wanted[field])}" for field, flag in _NUMBERS.items() if wanted.get(field) is not None]
    if (patience := durations.parse(str(wanted.get("maxNodeProvisionTime") or ""))) is not None:
        found.append(f"--max-node-provision-time={patience:g}s")
    different = wanted.get("maxFreeDifferenceRatioPercent")
    found.append(f"--max-free-difference-ratio={_share(_FREE_DIFFERENCE if different is None else different)}")
    labels = dict.fromkeys([*_IGNORED_LABELS, *(wanted.get("balancingIgnoredLabels") or ())])
    return [*found, *(f"--balancing-ignore-label={label}" for label in labels)]


def _removing(wanted: Mapping[str, Any]) -> list[str]:
    if wanted.get("scaling") == "ScaleUpOnly":
        return ["--scale-down-enabled=false"]
    given = wanted.get("scaleDown") or {}
    found = ["--scale-down-enabled=true"]
    found += [f"--{flag}={int(given[field])}s" for field, flag in _SCALE_DOWN.items() if given.get(field) is not None]
    if (used := given.get("utilizationThresholdPercent")) is not None:
        found.append(f"--scale-down-utilization-threshold={_share(used)}")
    return found


def _share(percent: int) -> str:
    return f"{percent / 100:.2f}"
