"""Machines that are the user's own: who may join, who is left to a person, and which addresses are a node's."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.csrs import request, serving

from hcp.api.names import ANNOTATION_EXPECTED_NODES, LABEL_NODEPOOL
from hcp.api.spec import is_unmanaged
from hcp.guest.nodes import node_patch
from hcp.guest.unmanaged import MOST_EXPECTED, expected_nodes, judge_request, pool_of


def pool(expected: str = "", name: str = "np", platform: str = "None") -> dict[str, Any]:
    annotations = {ANNOTATION_EXPECTED_NODES: expected} if expected else {}
    metadata = {"name": name, "namespace": "clusters", "annotations": annotations}
    return {"metadata": metadata, "spec": {"platform": {"type": platform}}}


def node(name: str = "vm-1", *addresses: str, label: str = "np") -> dict[str, Any]:
    known = [{"type": "InternalIP", "address": address} for address in addresses]
    known.append({"type": "Hostname", "address": name})
    return {"metadata": {"name": name, "labels": {LABEL_NODEPOOL: label}}, "status": {"addresses": known}}


def test_an_expected_machine_joins() -> None:
    verdict = judge_request(request(), [], [pool("other"), pool("vm-2, vm-1", "second")])
    assert verdict.approve and "second" in verdict.reason


@pytest.mark.parametrize("pools", [[], [pool()], [pool("vm-10,vm")], [pool("vm-1", platform="KubeVirt")]])
def test_an_unexpected_machine_is_left_to_a_person(pools: list[dict[str, Any]]) -> None:
    verdict = judge_request(request(), [], pools)
    assert verdict.approve is None and verdict.by_hand
    assert "'vm-1'" in verdict.reason


def test_the_name_of_a_node_is_not_given_away_even_if_it_is_expected() -> None:
    verdict = judge_request(request(), [node()], [pool("vm-1")])
    assert verdict.approve is None and verdict.by_hand
    assert "delete" in verdict.reason


@pytest.mark.parametrize(
    "bad",
    [{"name": "system:admin"}, {"groups": ["system:masters"]}, {"user": "somebody"}, {"names": ["vm-1"]}],
)
def test_what_is_wrong_in_itself_is_denied(bad: dict[str, Any]) -> None:
    for nodes in ([], [node()]):
        assert judge_request(request(**bad), nodes, [pool()]).approve is False


def test_a_node_renews_its_own_certificate() -> None:
    assert judge_request(request(user="system:node:vm-1"), [node()], [pool()]).approve
    gone = judge_request(request(user="system:node:vm-1"), [], [pool()])
    assert gone.approve is None and gone.by_hand


def test_serving_certificates_are_for_a_nodes_own_addresses() -> None:
    known = node("vm-1", "10.0.0.5")
    assert judge_request(serving(), [known], [pool()]).approve
    assert judge_request(serving(ips=["10.0.0.6"]), [known], [pool()]).approve is False
    assert judge_request(serving(names=["vm-2"]), [known], [pool()]).approve is False


def test_an_address_that_another_node_has_is_nobodys() -> None:
    both = [node("vm-1", "10.0.0.5"), node("vm-2", "10.0.0.5")]
    verdict = judge_request(serving(), both, [pool()])
    assert verdict.approve is False and "10.0.0.5" in verdict.reason
    pretender = node("vm-1", "10.0.0.5", "vm-2")
    assert judge_request(serving(names=["vm-2"]), [pretender, node("vm-2")], [pool()]).approve is False


def test_a_node_that_has_not_said_where_it_is_is_waited_for() -> None:
    silent = {"metadata": {"name": "vm-1"}}
    verdict = judge_request(serving(), [silent], [pool()])
    assert verdict.approve is None and not verdict.by_hand


def test_expected_names_are_bounded() -> None:
    many = pool(",".join(f"m{number}" for number in range(3 * MOST_EXPECTED)))
    assert len(expected_nodes(many)) == MOST_EXPECTED
    assert expected_nodes(pool(" a ,, b,a")) == ["a", "b"]


def test_a_node_belongs_to_the_unmanaged_pool_it_names() -> None:
    mine = pool()
    assert pool_of(node(), [pool(name="x"), mine]) is mine
    assert pool_of(node(), [pool(platform="KubeVirt")]) is None
    assert pool_of({"metadata": {"name": "vm-1"}}, [mine]) is None
    assert is_unmanaged(mine) and not is_unmanaged({})


def test_an_unmanaged_node_gets_no_provider_id() -> None:
    patch = node_patch(node(), "np", {}, [], unmanaged=True)
    assert patch is not None and "spec" not in patch
