"""URLs of kinds, and words of errors."""

from __future__ import annotations

import pytest

from hcp.errors import HcpError
from hcp.kube import resources as r
from hcp.kube.errors import (
    AlreadyExists,
    ApiError,
    Call,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    from_status,
)


def test_paths_of_core_and_grouped_kinds() -> None:
    assert r.PODS.path("ns", "p", "log") == "/api/v1/namespaces/ns/pods/p/log"
    assert r.PODS.path() == "/api/v1/pods"
    assert r.NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert r.DEPLOYMENTS.path("ns", "d", "status") == "/apis/apps/v1/namespaces/ns/deployments/d/status"


def test_known_kinds_are_found_by_api_version_and_kind() -> None:
    assert r.resource_for({"apiVersion": "apps/v1", "kind": "Deployment"}) is r.DEPLOYMENTS
    assert r.resource_for({"apiVersion": "config.openshift.io/v1", "kind": "Ingress"}) is r.INGRESS_CONFIGS
    for bad in ({}, {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Nothing"}):
        with pytest.raises(HcpError):
            r.resource_for(bad)


def test_every_known_kind_is_listed_once() -> None:
    constants = [v for v in vars(r).values() if isinstance(v, r.Resource)]
    assert len({(c.api_version, c.plural) for c in constants}) == len(constants) == len(r.KNOWN)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerFailure),
        (418, "", ApiError),
    ],
)
def test_each_status_is_an_error_of_its_own(status: int, reason: str, kind: type[ApiError]) -> None:
    call = Call("create", "pods", "ns", "p", "https://server")
    error = from_status(call, status, {"reason": reason, "message": "because", "details": {"name": "p"}})
    assert type(error) is kind
    assert (error.status, error.reason, error.cause, error.details) == (status, reason, "because", {"name": "p"})
    assert str(error).endswith(": because")


def test_forbidden_for_the_whole_cluster_says_so() -> None:
    error = from_status(Call("list", "nodes"), 403, {})
    assert error.sentence == "Not allowed to list nodes"
    assert error.hint == "Ask for a role with the verb list on nodes, bound for the whole cluster."
