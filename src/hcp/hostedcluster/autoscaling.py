"""Whether the node pools of a cluster follow the load."""

from __future__ import annotations

from hcp.api import names
from hcp.controlplane import autoscaler
from hcp.hostedcluster.scope import Scope


def wanted(scope: Scope) -> bool:
    """Whether a pool asks for it, of machines that we make, and there is a program that can."""
    p = scope.params
    ours = (scope.spec.get("platform") or {}).get("type") == names.PLATFORM_KUBEVIRT
    asked = p.autoscaled and names.ANNOTATION_DISABLE_AUTOSCALER not in p.annotations
    return asked and ours and bool(autoscaler.image(p))
