"""Authorities that a hosted cluster's owner gives to its nodes."""

from __future__ import annotations

from hcp.nodepool.inputs import usable_authorities
from hcp.pki import new_ca

PEM = new_ca("registry").cert_pem.decode()


def test_registries_are_named_by_host_and_port_and_only_certificates_count() -> None:
    data = {"registry.test": PEM, "registry.test..5000": PEM, "broken.test": "no certificate", "..": PEM, "..8443": PEM}
    assert usable_authorities({"data": data}) == {"registry.test": PEM, "registry.test:5000": PEM}
    assert usable_authorities(None) == {}
