"""What a HostedCluster says about logging in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.guest.platform.operators import Operator
from hcp.hostedcluster.observed import LoginState, Observed
from hcp.runtime import workloads
from hcp.runtime.conditions import Verdict

OPERATOR = "authentication"


def verdict(seen: LoginState) -> Verdict:
    if seen.problems:
        return False, c.INVALID_CONFIGURATION, "; ".join(seen.problems)
    return (
        True,
        c.AS_EXPECTED,
        "Identity providers can be asked" if seen.server else "Tokens of the issuer are believed",
    )


def wanted(seen: LoginState) -> bool:
    return seen.server or seen.direct


def told(status: Mapping[str, Any], login: LoginState | None) -> dict[str, Any]:
    """The status with where passwords are; while nobody has looked, what is known stays."""
    result = dict(status)
    if login is None:
        return result
    for name, value in (
        ("kubeadminPassword", {"name": login.kubeadmin} if login.kubeadmin else None),
        ("oauthCallbackURLTemplate", login.callback),
    ):
        if value:
            result[name] = value
        else:
            result.pop(name, None)
    return result


def operator(seen: Observed, reached: str) -> Operator | None:
    """None in a cluster without an OAuth server."""
    login = seen.login
    if login is None or not login.server or (login.deployment is None and not login.waiting):
        return None
    live = login.deployment
    answers, newest = workloads.serving(live), workloads.rolled_out(live)
    waiting = login.waiting or "Waiting for its pod"
    available: Verdict = (True, c.AS_EXPECTED, "It answers") if answers else (False, c.WAITING_FOR_AVAILABLE, waiting)
    progressing: Verdict = (False, c.AS_EXPECTED, "")
    if not newest:
        progressing = (True, c.ROLLING_OUT, "Its pod is being started or replaced")
    degraded: Verdict = (False, c.AS_EXPECTED, "")
    if login.problems:
        degraded = (True, c.INVALID_CONFIGURATION, "; ".join(login.problems))
    upgradeable: Verdict = (True, c.AS_EXPECTED, "All is well")
    version = seen.release.version if answers and newest else reached
    return Operator(OPERATOR, available, progressing, degraded, upgradeable, version)
