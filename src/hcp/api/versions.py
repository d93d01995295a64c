"""Version rules: from one release of a control plane to the next, and between a pool and its cluster. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hcp.errors import HcpError

MAX_MINORS_BEHIND = 3
_VERSION = re.compile(r"^v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?(?:[-+].*)?$")


@dataclass(frozen=True, order=True)
class Version:
    """Major, minor, patch; anything after them is left out of comparisons."""

    major: int
    minor: int
    patch: int = 0


def parse_version(text: str) -> Version:
    """Read ``1.36.3``, ``v1.36.3`` or ``4.20.1-rc.0``."""
    match = _VERSION.match(text)
    if match is None:
        raise HcpError(f"{text!r} is not a version")
    major, minor, patch = match.groups()
    return Version(int(major), int(minor), int(patch or 0))


def kubernetes_minor(version: Version) -> int:
    """The Kubernetes minor of a release: its own for Kubernetes releases, by the known table for OpenShift."""
    if version.major == 1:
        return version.minor
    return _openshift_step(version) + 13


def _openshift_step(version: Version) -> int:
    """OpenShift minors on one line: 5.x continues as 4.(23+x)."""
    if version.major >= 5:
        return 23 + version.minor
    return version.minor


def _same_line(first: Version, second: Version) -> bool:
    return (first.major == 1) == (second.major == 1)


def upgrade_problem(wanted: Version, current: Version | None) -> str | None:
    """Why a control plane should not move from its present release to this one; None when it can."""
    if current is None:
        return None
    if not _same_line(wanted, current):
        return "it is another kind of release than the one that runs"
    step = kubernetes_minor(wanted) - kubernetes_minor(current)
    if step < 0:
        return "it is an older minor version than the one that runs, and what is stored may be too new for it"
    if step > 1:
        return f"it leaves out {step - 1} minor versions, and API servers migrate what is stored one minor at a time"
    return None


def skew_problem(pool: Version, cluster: Version) -> str | None:
    """Why a pool of this version cannot join a cluster of that version; None when it can."""
    if not _same_line(pool, cluster):
        return "the node pool and the hosted cluster are of different kinds of release"
    behind = kubernetes_minor(cluster) - kubernetes_minor(pool)
    if behind < 0 or (behind == 0 and pool > cluster):
        return "the node pool is newer than its hosted cluster; upgrade the hosted cluster first"
    if behind > MAX_MINORS_BEHIND:
        return f"the node pool is {behind} minor versions behind its hosted cluster, at most {MAX_MINORS_BEHIND} work"
    return None


def release_problem(wanted: Version, current: Version | None, cluster: Version) -> str | None:
    """Why a pool cannot move to this release; None when it can."""
    if current is not None and _same_line(wanted, current) and kubernetes_minor(wanted) < kubernetes_minor(current):
        return "a node pool cannot go back to an older minor version"
    if not _same_line(wanted, cluster):
        return "the node pool and the hosted cluster are of different kinds of release"
    if kubernetes_minor(wanted) > kubernetes_minor(cluster):
        return "the node pool's release is newer than its hosted cluster; upgrade the hosted cluster first"
    return None
