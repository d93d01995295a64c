import base64
from dataclasses import replace
from typing import Any

import pytest
from tests.support.unit.csrs import request, serving

from hcp.guest.csr import (
    BOOTSTRAP_USER,
    MachineFacts,
    addresses_of,
    approval,
    concerns_us,
    judge,
    node_name,
)

MACHINE = MachineFacts("vm-1", "clusters/np", True, frozenset({"10.0.0.5"}), False)


def test_a_machine_of_ours_joins() -> None:
    verdict = judge(request(), MACHINE)
    assert verdict.approve and "clusters/np" in verdict.reason
    assert node_name(request()) == "vm-1"
    assert approval(verdict, "now")["type"] == "Approved"


def test_strangers_are_denied() -> None:
    assert judge(request(), None).approve is False
    assert judge(request(), replace(MACHINE, pool_exists=False)).approve is False
    assert approval(judge(request(), None), "now")["type"] == "Denied"


def test_an_existing_node_cannot_be_impersonated() -> None:
    known = replace(MACHINE, has_node=True)
    assert judge(request(), known).approve is False
    assert judge(request(user="system:node:vm-1"), known).approve
    assert judge(request(user="system:node:vm-2"), known).approve is False


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "system:admin"},
        {"groups": ["system:masters"]},
        {"groups": ["system:nodes", "system:masters"]},
        {"groups": []},
        {"names": ["vm-1"]},
        {"usages": ["client auth", "server auth"]},
        {"user": "eve"},
    ],
)
def test_odd_client_requests_are_denied(bad: dict[str, Any]) -> None:
    assert judge(request(**bad), MACHINE).approve is False


def test_serving_certificates_name_only_own_addresses() -> None:
    assert judge(serving(), MACHINE).approve
    assert judge(serving(ips=["10.0.0.6"]), MACHINE).approve is False
    assert judge(serving(names=["vm-1", "kubernetes"]), MACHINE).approve is False
    assert judge(serving(user=BOOTSTRAP_USER), MACHINE).approve is False
    assert judge(serving(usages=["client auth"]), MACHINE).approve is False
    assert judge(serving(names=[], ips=[]), MACHINE).approve is False
    assert judge(serving(), replace(MACHINE, addresses=frozenset())).approve is None


def test_unreadable_requests() -> None:
    broken = request()
    broken["spec"]["request"] = base64.b64encode(b"nonsense").decode()
    assert judge(broken, MACHINE).approve is False
    assert node_name(broken) == ""


def test_only_open_requests_of_nodes_concern_us() -> None:
    assert concerns_us(request())
    assert not concerns_us({**request(), "status": {"conditions": [{"type": "Approved"}]}})
    assert not concerns_us(request(signer="kubernetes.io/kube-apiserver-client"))


def test_addresses() -> None:
    machine = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}
    instance = {"status": {"interfaces": [{"ipAddress": "10.0.0.2", "ipAddresses": ["10.0.0.2", "fd00::2/64"]}, {}]}}
    assert addresses_of(machine, instance) == {"10.0.0.1", "10.0.0.2", "fd00::2"}
    assert addresses_of({}, None) == frozenset()
