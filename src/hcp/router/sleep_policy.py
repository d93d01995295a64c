"""Who may say that a hosted cluster sleeps, and that it was asked for: pure builders.

Both are annotations of the Route of its API. Whoever may edit Routes of a namespace could have the router hold
connections, or wake a cluster that nobody asked for.
"""

from __future__ import annotations

from hcp.api import names
from hcp.api.manifests import Object
from hcp.router.status_policy import IS_ROUTER, policy

NAME = "hcp-route-sleep"
# Who may write the status of every HostedCluster is the operator.
IS_OPERATOR = (
    f"authorizer.group({names.GROUP!r}).resource('hostedclusters').subresource('status').check('patch').allowed()"
)


def objects() -> list[Object]:
    return policy(
        NAME,
        "routes",
        ["CREATE", "UPDATE"],
        [
            _refusal(names.MARK_SLEEPS_SINCE, IS_OPERATOR, "only the operator says that a cluster sleeps"),
            _refusal(names.MARK_ASKED_FOR, IS_ROUTER, "only the router says that a cluster was asked for"),
        ],
    )


def _refusal(mark: str, may: str, words: str) -> Object:
    before, after = (f"{one}.metadata.?annotations[?{mark!r}]" for one in ("oldObject", "object"))
    kept = f"(oldObject == null ? optional.none() : {before}) == {after}"
    return {"expression": f"{kept} || {may}", "message": f"annotation {mark}: {words}", "reason": "Forbidden"}
