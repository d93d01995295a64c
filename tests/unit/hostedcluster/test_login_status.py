"""What a HostedCluster says about logging in."""

from __future__ import annotations

from typing import Any

from tests.support.unit.hostedcluster import cluster, deployment
from tests.unit.hostedcluster.test_status import NOW, healthy, verdict

from hcp.hostedcluster import cluster_operators, status
from hcp.hostedcluster.observed import LoginState
from hcp.runtime.conditions import get_condition

RUNNING = LoginState(
    server=True,
    deployment=deployment("oauth-openshift"),
    callback="https://oauth.example/callback",
    kubeadmin="demo-kubeadmin-password",
)


def told(login: LoginState | None, **before: Any) -> dict[str, Any]:
    made = cluster()
    made["status"] = before
    return status.compute(made, healthy(login=login), NOW)


def test_a_cluster_with_an_oauth_server_names_its_password_and_its_address() -> None:
    result = told(RUNNING)
    assert result["kubeadminPassword"] == {"name": "demo-kubeadmin-password"}
    assert result["oauthCallbackURLTemplate"] == "https://oauth.example/callback"
    assert verdict(result, "ValidIDPConfiguration") == ("True", "AsExpected")


def test_what_is_known_stays_while_nobody_has_looked_and_goes_when_it_is_gone() -> None:
    result = told(RUNNING)
    assert told(None, **result)["kubeadminPassword"] == result["kubeadminPassword"]
    gone = told(LoginState(), **result)
    assert "kubeadminPassword" not in gone and "oauthCallbackURLTemplate" not in gone
    assert get_condition(gone["conditions"], "ValidIDPConfiguration") is None


def test_a_provider_that_is_wrong_is_told_inside_too() -> None:
    seen = healthy(login=LoginState(server=True, deployment=deployment("oauth-openshift"), problems=("bad one",)))
    assert verdict(status.compute(cluster(), seen, NOW), "ValidIDPConfiguration") == ("False", "InvalidConfiguration")
    (operator,) = (one for one in cluster_operators.found(cluster(), seen) if one.name == "authentication")
    assert operator.works and operator.degraded[:2] == (True, "InvalidConfiguration")


def test_without_an_oauth_server_there_is_no_such_operator() -> None:
    for login in (None, LoginState(), LoginState(direct=True)):
        found = cluster_operators.found(cluster(), healthy(login=login))
        assert "authentication" not in {one.name for one in found}
