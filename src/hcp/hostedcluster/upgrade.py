"""Whether a control plane may move to another release. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.versions import kubernetes_minor, parse_version, upgrade_problem
from hcp.errors import HcpError
from hcp.hostedcluster.version import completed_version
from hcp.runtime.conditions import get_condition


def problem(cluster: Mapping[str, Any], image: str, wanted: str) -> str:
    """Why the release `image` of version `wanted` is not rolled out; empty when it is."""
    status, notes = cluster.get("status") or {}, cluster["metadata"].get("annotations") or {}
    if notes.get(names.ANNOTATION_FORCE_UPGRADE_TO) == image or names.ANNOTATION_SKIP_RELEASE_VALIDATION in notes:
        return ""
    running = completed_version(status.get("controlPlaneVersion"))
    if not running:
        return ""
    try:
        new, old = parse_version(wanted), parse_version(running)
    except HcpError:
        return ""  # versions of nobody's scheme are the user's own business
    why = upgrade_problem(new, old)
    held = get_condition(status.get("conditions"), c.CLUSTER_VERSION_UPGRADEABLE) or {}
    if why is None and held.get("status") == "False" and kubernetes_minor(new) > kubernetes_minor(old):
        why = f"the cluster says that it cannot be upgraded: {held.get('message')}"
    if why is None:
        return ""
    return (
        f"The control plane of version {running} is not moved to {wanted}: {why}. "
        f"To do it nevertheless, set the annotation {names.ANNOTATION_FORCE_UPGRADE_TO} to {image}"
    )
