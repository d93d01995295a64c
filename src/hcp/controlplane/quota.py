"""How much a hosted cluster may make in its hosted namespace: what a tenant asks for inside becomes objects here.

Load balancers and volumes of the guest, machines of its pools and their disks all count.
"""

from __future__ import annotations

from collections.abc import Mapping

from hcp.controlplane.meta import obj
from hcp.controlplane.params import Manifest, Params

NAME = "hosted-cluster"
UNLIMITED = "none"
# As the administrator writes it: what Kubernetes calls it, and how many there may be when nothing is said.
KINDS = {
    "loadbalancers": ("services.loadbalancers", "20"),
    "claims": ("persistentvolumeclaims", "200"),
    "pods": ("pods", "100"),
}


def resource_quota(p: Params, given: Mapping[str, str]) -> Manifest:
    """The quota; without a limit in it when the administrator wants none."""
    hard = {}
    for word, (resource, usual) in KINDS.items():
        value = given.get(word, usual)
        if value != UNLIMITED:
            hard[resource] = value
    return obj(p, "v1", "ResourceQuota", NAME, {"spec": {"hard": hard}})


def problem(given: Mapping[str, str]) -> str | None:
    """What is wrong with the words of an administrator."""
    for word, value in given.items():
        if word not in KINDS:
            return f"{word!r} is not one of {', '.join(KINDS)}"
        if value != UNLIMITED and not (value.isascii() and value.isdigit() and int(value) > 0):
            return f"{word}={value} is neither a number above 0 nor {UNLIMITED}"
    return None
