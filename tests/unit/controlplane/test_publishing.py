from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from tests.support.unit.controlplane import params

from hcp.controlplane import certs, issuing, kubeconfigs, policies, services
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import Endpoint, Publishing

LB = Publishing("APIServer", "LoadBalancer")


def service(**status: Any) -> dict[str, Any]:
    return {"spec": {"ports": [{"port": 6443, "nodePort": 31234}]}, "status": status}


@pytest.mark.parametrize(
    ("publishing", "live", "route", "expected"),
    [
        (LB, service(), None, None),
        (LB, None, None, None),
        (LB, service(loadBalancer={"ingress": [{"ip": "1.2.3.4"}]}), None, Endpoint("1.2.3.4", 6443)),
        (LB, service(loadBalancer={"ingress": [{"hostname": "lb.x", "ip": "1.2.3.4"}]}), None, Endpoint("lb.x", 6443)),
        (Publishing("APIServer", "LoadBalancer", "api.x"), service(), None, Endpoint("api.x", 6443)),
        (Publishing("APIServer", "NodePort", "", "9.9.9.9"), service(), None, Endpoint("9.9.9.9", 31234)),
        (Publishing("APIServer", "Route", "api.apps.x"), None, None, Endpoint("api.apps.x", 443)),
        (Publishing("APIServer", "Route"), None, {"spec": {"host": "made.x"}}, Endpoint("made.x", 443)),
        (Publishing("APIServer", "Route"), None, {"spec": {}}, None),
    ],
)
def test_endpoint(publishing: Publishing, live: Any, route: Any, expected: Endpoint | None) -> None:
    assert services.endpoint(publishing, live, route) == expected
    assert services.waiting_for(publishing)


def test_route_hosts_fit_into_a_dns_label() -> None:
    assert services.route_host("kube-apiserver", "clusters-demo", "apps.x") == "kube-apiserver-clusters-demo.apps.x"
    host = services.route_host("konnectivity-server", "n" * 63, "apps.x")
    assert len(host.partition(".")[0]) <= 63
    assert host != services.route_host("konnectivity-server", "n" * 62 + "m", "apps.x")


def test_services_follow_the_strategy() -> None:
    p = params(
        publishing={"APIServer": Publishing("APIServer", "NodePort", "", "9.9.9.9", 31000)},
        allowed_cidrs=("10.0.0.0/8",),
    )
    assert services.api_service(p)["spec"]["ports"][0]["nodePort"] == 31000
    lb = services.api_service(params(allowed_cidrs=("10.0.0.0/8",)))
    assert lb["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert [r["metadata"]["name"] for r in services.routes(params())] == ["konnectivity-server"]


def test_the_serving_certificate_has_every_name_the_api_is_called_by() -> None:
    p = params(api_dns_name="api.custom.example")
    authorities = issuing.authorities(p, {})
    issued = issuing.leaves(p, certs.leaves(p), {}, issuing.read(authorities.secrets))
    pem = secret_data(issued.secrets["kas-server-crt"])["tls.crt"]
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    dns = names.get_values_for_type(x509.DNSName)
    ips = {str(i) for i in names.get_values_for_type(x509.IPAddress)}
    assert {"kubernetes.default.svc", "kube-apiserver.clusters-demo.svc", "api.custom.example"} <= set(dns)
    assert {"127.0.0.1", "172.31.0.1", "172.20.0.1", "10.88.0.65"} <= ips


def test_a_new_address_renews_only_what_says_it() -> None:
    p = params()
    authorities = issuing.authorities(p, {})
    pairs = issuing.read(authorities.secrets)
    first = issuing.leaves(p, certs.leaves(p), {}, pairs)
    moved = params(api_endpoint=Endpoint("10.88.0.99", 6443))
    second = issuing.leaves(moved, certs.leaves(moved), first.secrets, pairs)
    assert second.fresh == {"kas-server-crt"}


def test_kubeconfigs_point_inside_and_outside() -> None:
    p = params()
    authorities = issuing.authorities(p, {})
    pairs = issuing.read(authorities.secrets)
    leaves = issuing.leaves(p, certs.leaves(p), {}, pairs).secrets
    root = pairs["root-ca"].trusted
    inside = {m["metadata"]["name"]: m for m in kubeconfigs.internal(p, leaves, root)}
    assert b"https://kube-apiserver.clusters-demo.svc:6443" in secret_data(inside["demo-abcde-kubeconfig"])["value"]
    assert inside["demo-abcde-kubeconfig"]["type"] == "cluster.x-k8s.io/secret"
    outside = {m["metadata"]["name"]: m for m in kubeconfigs.external(p, leaves, root)}
    assert b"https://10.88.0.65:6443" in secret_data(outside["admin-kubeconfig"])["kubeconfig"]
    assert kubeconfigs.external(params(api_endpoint=None), leaves, root) == []
    users = kubeconfigs.for_users(p, b"x", {"uid": "1"})
    assert [m["metadata"]["name"] for m in users] == ["demo-admin-kubeconfig", "clusters-demo-admin-kubeconfig"]


def test_nothing_but_named_traffic_reaches_a_hosted_namespace() -> None:
    by_name = {m["metadata"]["name"]: m["spec"] for m in policies.policies(params())}
    assert by_name["default-deny"]["ingress"] == []
    assert {"kas", "same-namespace", "openshift-ingress", "openshift-monitoring"} <= by_name.keys()
    assert all("from" in rule for rule in by_name["same-namespace"]["ingress"])
    node_port = params(publishing={"Konnectivity": Publishing("Konnectivity", "NodePort", "", "9.9.9.9")})
    assert "nodeport-konnectivity-kas" in {m["metadata"]["name"] for m in policies.policies(node_port)}


def test_components_call_the_world_and_nothing_of_the_management_cluster() -> None:
    p = params(hidden_networks=("10.128.0.0/14", "192.0.2.1/32"), management_api=(("192.0.2.1", 6443),))
    by_name = {m["metadata"]["name"]: m["spec"] for m in policies.policies(p)}
    everyone = by_name["component-egress"]
    assert everyone["policyTypes"] == ["Egress"]
    inside = everyone["egress"][0]["to"][1]["ipBlock"]["except"]
    assert inside == ["10.128.0.0/14", "169.254.0.0/16", "192.0.2.1/32"]
    assert "openshift-ingress" in str(everyone)  # konnectivity is published by a Route
    balanced = {"APIServer": Publishing("APIServer", "LoadBalancer")}
    assert "openshift-ingress" not in str(
        [m["spec"].get("egress") for m in policies.policies(params(publishing=balanced))]
    )
    api = by_name["management-kas"]
    assert api["podSelector"] == {"matchLabels": {"hypershift.openshift.io/need-management-kas-access": "true"}}
    [only] = api["egress"]
    assert only == {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"protocol": "TCP", "port": 6443}]}
