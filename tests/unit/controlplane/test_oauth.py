"""The OAuth server of a hosted cluster."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.controlplane import oauth
from hcp.controlplane.identity_providers import Providers
from hcp.controlplane.params import LOGIN_IMAGE, Endpoint, Publishing

ENDPOINT = Endpoint("oauth-clusters-demo.apps.example", 443)
P = params(images={**IMAGES, LOGIN_IMAGE: "registry.example/dex@sha256:0"}, cluster_uid="uid-1")


def configured(spec: dict[str, Any] | None = None, providers: Providers | None = None, **more: Any) -> dict[str, Any]:
    kubeadmin = more.get("kubeadmin", True)
    made = oauth.config(P, spec or {}, ENDPOINT, providers or Providers(), kubeadmin=kubeadmin)
    found: dict[str, Any] = json.loads(base64.b64decode(made["data"][oauth.FILE]))
    return found


def test_the_issuer_has_no_port_that_everybody_assumes() -> None:
    assert oauth.issuer(ENDPOINT) == "https://oauth-clusters-demo.apps.example"
    assert oauth.issuer(Endpoint("192.0.2.1", 31000)) == "https://192.0.2.1:31000"


def test_kubeadmin_and_users_of_files_are_asked_for_in_one_place() -> None:
    made = configured(providers=Providers(users={"team": b"alice:x\n", "other": b"bob:y\n"}))
    (own,) = made["connectors"]
    assert own["type"] == "htpasswd"
    assert [one["provider"] for one in own["config"]["files"]] == ["", "team", "other"]
    assert made["oauth2"]["passwordConnector"] == own["id"]


def test_without_files_nobody_is_asked_for_a_password() -> None:
    providers = Providers(connectors=[{"type": "github", "id": "hub", "name": "hub", "config": {}}])
    made = configured(providers=providers, kubeadmin=False)
    assert [one["id"] for one in made["connectors"]] == ["hub"]
    assert "passwordConnector" not in made["oauth2"]


def test_tokens_are_short_whatever_is_asked_for() -> None:
    def expiry(**given: Any) -> Any:
        return configured({"configuration": {"oauth": {"tokenConfig": given}}})["expiry"]

    assert expiry()["idTokens"] == "900s"
    assert expiry()["refreshTokens"]["absoluteLifetime"] == "86400s"
    assert expiry(accessTokenMaxAgeSeconds=604800)["idTokens"] == "900s"
    assert expiry(accessTokenMaxAgeSeconds=300)["idTokens"] == "300s"
    assert expiry(accessTokenInactivityTimeout="10m0s")["refreshTokens"]["validIfNotUsedFor"] == "10m0s"


def test_another_password_starts_nothing_anew() -> None:
    one, two = (oauth.users(P, Providers(), password) for password in ("one", "two"))
    assert one != two
    assert "one" not in base64.b64decode(one["data"]["kubeadmin"]).decode().partition(":")[2]
    names = {v["secret"]["secretName"] for v in oauth.deployment(P, "h")["spec"]["template"]["spec"]["volumes"]}
    assert names == {oauth.CONFIG, oauth.USERS, oauth.LEAF}


def test_it_is_published_as_asked_for() -> None:
    assert oauth.service(P)["spec"]["type"] == "ClusterIP"
    assert oauth.policy(P) is None, "the router is let in by a policy for all"
    node_port = params(
        publishing={"OAuthServer": Publishing("OAuthServer", "NodePort", address="192.0.2.1", port=31000)}
    )
    assert oauth.service(node_port)["spec"]["ports"][0]["nodePort"] == 31000
    policy = oauth.policy(node_port)
    assert policy is not None and policy["spec"]["ingress"] == [{"ports": [{"port": 6443, "protocol": "TCP"}]}]


def test_its_pod_can_do_nothing_but_answer() -> None:
    pod = oauth.deployment(P, "h")["spec"]["template"]["spec"]
    (main,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert main["securityContext"]["readOnlyRootFilesystem"] is True
    assert all(mount["readOnly"] for mount in main["volumeMounts"])
    assert {"name": "DEX_EXPAND_ENV", "value": "false"} in main["env"]
