"""The way to the default ingress through the management cluster's router."""

from __future__ import annotations

from typing import Any

from tests.support.unit.hostedcluster import cluster

from hcp.hostedcluster import infra_ingress, ingress
from hcp.hostedcluster.translate import params

MANAGEMENT = "apps.mgmt.test"


def spec(**changes: Any) -> dict[str, Any]:
    kubevirt = {"generateID": "abcdefghij", "baseDomainPassthrough": True} | changes.pop("kubevirt", {})
    dns = {"baseDomain": MANAGEMENT} | changes.pop("dns", {})
    made: dict[str, Any] = cluster(platform={"type": "KubeVirt", "kubevirt": kubevirt}, dns=dns, **changes)["spec"]
    return made


def test_only_names_below_the_management_clusters_own_domain_are_led_here() -> None:
    assert ingress.passed_through(spec(), MANAGEMENT)
    assert ingress.passed_through(spec(dns={"baseDomainPrefix": "blue"}), MANAGEMENT)
    assert not ingress.passed_through(spec(dns={"baseDomain": "bank.example.com"}), MANAGEMENT)
    assert not ingress.passed_through(spec(dns={"baseDomain": "mgmt.test", "baseDomainPrefix": ""}), MANAGEMENT)
    assert not ingress.passed_through(spec(dns={"baseDomainPrefix": ""}), MANAGEMENT)
    assert not ingress.passed_through(spec(), "")
    assert not ingress.passed_through(spec(kubevirt={"baseDomainPassthrough": False}), MANAGEMENT)
    assert not ingress.passed_through(spec(kubevirt={"credentials": {"infraNamespace": "vms"}}), MANAGEMENT)


def test_it_can_be_left_out() -> None:
    assert ingress.wanted(spec())
    assert not ingress.wanted(spec(capabilities={"disabled": ["Console", "Ingress"]}))


def test_the_names_are_those_that_tools_look_for() -> None:
    made = cluster(platform={"type": "KubeVirt", "kubevirt": {"generateID": "abcdefghij"}})
    service, route = ingress.passthrough(params(made), made["spec"], "apps.demo.apps.mgmt.test", 31443)
    assert service["metadata"]["name"] == "default-ingress-passthrough-service-abcdefghij"
    assert service["spec"]["ports"][0]["targetPort"] == 31443
    assert route["metadata"]["name"] == "default-ingress-passthrough-route-abcdefghij"
    assert route["spec"]["to"]["name"] == service["metadata"]["name"]


def test_who_owns_the_domain_is_told_the_record_to_the_letter() -> None:
    p, domain = params(cluster()), "apps.demo.example.com"
    assert ingress.own_domain(spec(dns={"baseDomain": "bank.example"}), MANAGEMENT)
    assert not ingress.own_domain(spec(dns={"baseDomain": "example.com"}), MANAGEMENT), "nobody has asked for that"
    assert not ingress.own_domain(spec(), MANAGEMENT)

    def todo(**status: Any) -> str:
        return ingress.todo(p, domain, 31443, {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": status}})

    assert "Service demo-apps of type LoadBalancer" in ingress.todo(p, domain, 31443, None)
    assert "port 31443" in ingress.todo(p, domain, 31443, None)
    assert "no address yet" in todo()
    assert todo(ingress=[{"ip": "192.0.2.7"}]) == "make the DNS record: *.apps.demo.example.com. IN A 192.0.2.7"
    assert todo(ingress=[{"ip": "2001:db8::7"}]).endswith("IN AAAA 2001:db8::7")
    assert todo(ingress=[{"hostname": "lb.example"}]).endswith("IN CNAME lb.example.")


def test_external_dns_finds_the_name_and_nothing_else_of_the_service_is_ours() -> None:
    made = ingress.named(params(cluster()), "apps.demo.example.com")
    assert made["metadata"]["annotations"] == {"external-dns.alpha.kubernetes.io/hostname": "*.apps.demo.example.com"}
    assert set(made) == {"apiVersion", "kind", "metadata"}


def test_elsewhere_nothing_of_here_owns_the_way_and_only_the_infra_id_marks_it() -> None:
    made = cluster(platform={"type": "KubeVirt", "kubevirt": {"generateID": "abcdefghij"}})
    p = params(made, owner={"kind": "HostedControlPlane", "name": "demo", "uid": "1"})
    here = ingress.passthrough(p, made["spec"], "apps.demo.apps.infra.test", 31443)
    service, route = infra_ingress.elsewhere(here, "vms", "demo-abcde")
    for one in (service, route):
        assert set(one["metadata"]) == {"name", "namespace", "labels"}
        assert one["metadata"]["labels"] == {"hypershift.openshift.io/infra-id": "demo-abcde"}
        assert one["metadata"]["namespace"] == "vms"
    assert route["spec"] == here[1]["spec"]
    assert "namespace vms" in ingress.todo(p, "apps.demo.bank.test", 31443, None, "vms")


def test_it_is_asked_for_elsewhere_only_with_credentials() -> None:
    away = {"credentials": {"infraNamespace": "vms", "infraKubeConfigSecret": {"name": "x", "key": "kubeconfig"}}}
    assert infra_ingress.asked(spec(kubevirt=away))
    assert not infra_ingress.asked(spec())
    assert not infra_ingress.asked(spec(kubevirt={**away, "baseDomainPassthrough": False}))
    assert not ingress.below(spec(dns={"baseDomainPrefix": ""})), "not all of the domain"
    one, other = ({"data": {"kubeconfig": text}} for text in ("YQ==", "Yg=="))
    assert infra_ingress.fingerprint(None) == ""
    assert infra_ingress.fingerprint(one) != infra_ingress.fingerprint(other)
