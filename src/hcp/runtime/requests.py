"""Requests to API servers as metrics: how many writes a hosted cluster costs is a figure we hold."""

from __future__ import annotations

from hcp.runtime import metrics

REQUESTS = metrics.Counter(
    "hcp_api_requests_total",
    "Requests to the management API, by verb, resource and status.",
    ["verb", "resource", "code"],
)
DURATION = metrics.Histogram("hcp_api_request_seconds", "Time of a request, watches left out, by verb.", ["verb"])
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def observe_request(verb: str, resource: str, status: int, seconds: float) -> None:
    """Give this to a Client as its observer."""
    REQUESTS.inc(verb=verb, resource=resource, code=str(status))
    if verb != "watch":
        DURATION.observe(seconds, verb=verb)


def writes() -> float:
    """All writes so far."""
    return sum(count for (verb, _, _), count in REQUESTS.items() if verb in WRITES)
