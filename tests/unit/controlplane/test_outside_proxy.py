"""The cluster's proxy in its control plane: for who asks the outside, and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.controlplane import IMAGES, params, workloads

from hcp.controlplane import apiserver, oauth, outside_proxy
from hcp.controlplane.identity_providers import Providers
from hcp.controlplane.params import LOGIN_IMAGE

URL = "http://user:word@proxy.example.com:3128"
PROXY = {"httpProxy": URL, "httpsProxy": URL, "noProxy": "idp.example.com, 192.0.2.0/24"}
P = params(images={**IMAGES, LOGIN_IMAGE: "registry.example/dex@sha256:0"})
PROXIED = params(images=P.images, proxy=PROXY)
GITHUB = Providers(connectors=[{"type": "github", "id": "hub", "name": "hub", "config": {}}])
LDAP = Providers(connectors=[{"type": "ldap", "id": "dir", "name": "dir", "config": {}}])


def environment(deployment: dict[str, Any]) -> dict[str, str]:
    main = deployment["spec"]["template"]["spec"]["containers"][0]
    return {one["name"]: one.get("value", "") for one in main["env"]}


def test_the_oauth_server_asks_providers_through_it() -> None:
    found = environment(oauth.deployment(PROXIED, "h", outside=oauth.asks_outside(GITHUB)))
    assert found["HTTPS_PROXY"] == found["HTTP_PROXY"] == URL
    direct = found["NO_PROXY"].split(",")
    assert {"idp.example.com", "192.0.2.0/24", ".svc", *PROXIED.cluster_networks, *PROXIED.service_networks} <= {
        *direct
    }


@pytest.mark.parametrize("providers", [Providers(), Providers(users={"team": b"a:x"}), LDAP])
def test_without_providers_of_the_outside_nothing_changes(providers: Providers) -> None:
    outside = oauth.asks_outside(providers)
    assert oauth.deployment(PROXIED, "h", outside=outside) == oauth.deployment(P, "h")


def test_the_api_server_fetches_an_issuers_keys_through_it_and_speaks_with_nodes_directly() -> None:
    found = environment(apiserver.deployment(params(proxy=PROXY, own_issuer=True), "h"))
    assert found["HTTPS_PROXY"] == URL
    assert {"0.0.0.0/0", "::/0", "etcd-client", ".svc"} <= {*found["NO_PROXY"].split(",")}


def test_clusters_that_ask_nobody_roll_nothing() -> None:
    assert workloads(params(proxy=PROXY)) == workloads(params())
    assert workloads(params(own_issuer=True, proxy={"noProxy": "x"})) == workloads(params(own_issuer=True))


def test_an_etcd_of_somebody_else_s_is_asked_directly() -> None:
    found = outside_proxy.environment(params(proxy=PROXY, foreign_etcd="https://etcd.example.com:2379"))
    assert "etcd.example.com" in found["NO_PROXY"].split(",")
