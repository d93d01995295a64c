from __future__ import annotations

import pytest
from tests.support.unit.controlplane import params

from hcp.controlplane import apiserver, serving_certs
from hcp.controlplane.params import Endpoint, NamedCert
from hcp.pki import issue, new_ca

CA = new_ca("theirs")


def given(*hosts: str) -> dict[str, bytes]:
    leaf = issue(CA, hosts[0], dns=hosts, usage="server")
    return {"tls.crt": leaf.cert_pem, "tls.key": leaf.key_pem}


def test_a_certificate_is_shown_for_its_names_and_rolls_only_for_other_names() -> None:
    one = NamedCert("mine", ("api.example.com",))
    found = serving_certs.choose(params(), [one], {"mine": given("api.example.com")}, {})
    assert found.certs == (one,) and found.problems == ()
    p = params(named_certs=found.certs)
    wanted = "--tls-sni-cert-key=/etc/kubernetes/named-certs/mine.crt,/etc/kubernetes/named-certs/mine.key"
    assert f"{wanted}:api.example.com" in apiserver.arguments(p)
    assert ("Secret", serving_certs.SECRET) not in apiserver.mounted(p), "its content is read again"
    assert apiserver.arguments(params()) == [one for one in apiserver.arguments(p) if "sni" not in one]
    assert wanted in apiserver.arguments(params(named_certs=(NamedCert("mine"),))), "without names, those in it"


@pytest.mark.parametrize(
    ("hosts", "name"),
    [
        (("kubernetes.default.svc",), "kubernetes.default.svc"),
        (("*.clusters-demo.svc",), "kube-apiserver.clusters-demo.svc"),
        (("api.published.test",), "api.published.test"),
    ],
)
def test_names_that_nodes_and_pods_trust_by_another_authority_are_refused(hosts: tuple[str, ...], name: str) -> None:
    p = params(api_endpoint=Endpoint("api.published.test", 6443))
    for asked in (NamedCert("mine", hosts), NamedCert("mine")):
        found = serving_certs.choose(p, [asked], {"mine": given(*hosts)}, {})
        assert found.certs == () and found.files == {}
        assert name in found.problems[0]


def test_what_cannot_be_used_leaves_what_is_shown_already() -> None:
    one, data = NamedCert("mine", ("api.example.com",)), given("api.example.com")
    shown = serving_certs.choose(params(), [one], {"mine": data}, {}).files
    other = given("api.example.com")
    for bad in ({}, {"mine": {**data, "tls.key": other["tls.key"]}}, {"mine": {"tls.crt": b"x", "tls.key": b"y"}}):
        found = serving_certs.choose(params(), [one], bad, shown)
        assert found.certs == (one,) and found.files == shown, "an API server that names files needs them"
        assert len(found.problems) == 1
        assert serving_certs.choose(params(), [one], bad, {}).certs == (), "nor is it named where there is none"


def test_the_kubeconfig_for_the_name_of_ones_own_trusts_its_certificate() -> None:
    p = params(api_dns_name="api.example.com")
    found = serving_certs.choose(
        p, [NamedCert("mine")], {"mine": {**given("*.example.com"), "ca.crt": CA.cert_pem}}, {}
    )
    assert found.problems == ()
    assert CA.cert_pem in found.trust and found.files["mine.crt"] in found.trust


def test_what_is_not_the_name_of_a_host_never_gets_into_a_flag() -> None:
    found = serving_certs.choose(params(), [NamedCert("mine", ("a,b:c",))], {"mine": given("a.test")}, {})
    assert found.certs == () and "cannot be the name of a host" in found.problems[0]
