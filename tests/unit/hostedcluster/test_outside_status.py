from __future__ import annotations

import asyncio

from hcp.hostedcluster import external_names, outside_status
from hcp.hostedcluster.observed import Names


def service(name: str, kind: str, **block: str) -> dict[str, object]:
    key = "route" if kind == "Route" else "loadBalancer"
    return {"service": name, "servicePublishingStrategy": {"type": kind, key: block}}


def test_only_names_of_the_owners_are_asked_for() -> None:
    services = [
        service("APIServer", "LoadBalancer", hostname="api.example.com"),
        service("Konnectivity", "Route"),
        service("OAuthServer", "Route", hostname="oauth.example.com"),
    ]
    spec = {"services": services, "kubeAPIServerDNSName": "api.example.com"}
    assert external_names.given(spec) == ("api.example.com", "oauth.example.com")
    assert external_names.given({"services": [service("Konnectivity", "Route")]}) == ()


async def test_the_dns_is_asked_beside_the_passes() -> None:
    told: list[str] = []
    names = external_names.ExternalNames(told.append)
    cluster = {"metadata": {"name": "demo", "namespace": "clusters"}}
    hosts = ("localhost", "nobody.invalid")
    assert names.look(cluster, hosts)[0] is None
    while not told:
        await asyncio.sleep(0.01)
    assert names.look(cluster, hosts)[0] == ("nobody.invalid",)
    await names.close()


def test_the_condition_says_which_record_is_missing() -> None:
    assert outside_status.names(Names(("a.test",), None))[0] == "Unknown"
    good, bad = outside_status.names(Names(("a.test",), ())), outside_status.names(Names(("a.test",), ("a.test",)))
    assert good[:2] == (True, "AsExpected")
    assert bad[:2] == (False, "ExternalDNSHostNotReachable") and "a.test" in bad[2]


def test_what_is_wrong_with_a_proxy_is_told_by_its_kind() -> None:
    assert outside_status.proxy(())[0] is True
    assert outside_status.proxy(("configuration.proxy.trustedCA: the ConfigMap …",))[1] == "ProxyCABundleInvalid"
    assert outside_status.proxy(("configuration.proxy.httpProxy 'x' is not a proxy",))[1] == "InvalidConfiguration"
