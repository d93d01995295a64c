"""Where catalogs of operators run, and what runs beside a control plane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.unit.controlplane import params

from hcp.api import names
from hcp.controlplane import catalogs as parts
from hcp.controlplane.meta import LABEL_COMPONENT
from hcp.hostedcluster.catalogs import address, obstacle

POOL = {"metadata": {"name": "np"}, "spec": {"platform": {"kubevirt": {"attachDefaultNetwork": True}}}}
ALONE = {"metadata": {"name": "np"}, "spec": {"platform": {"kubevirt": {"attachDefaultNetwork": False}}}}


@pytest.mark.parametrize(
    ("change", "pools", "why"),
    [
        ({}, [], ""),
        ({}, [POOL], ""),
        ({}, [POOL, ALONE], "NodePool np are not attached"),
        ({"vms_inside": False}, [POOL], "do not run beside"),
        ({"hidden_networks": ("10.0.0.0/16", "fd00::/64")}, [], ""),
        ({"hidden_networks": ("172.31.128.0/20",)}, [], "172.31.0.0/16 covers 172.31.128.0/20"),
    ],
)
def test_machines_that_cannot_reach_them_keep_catalogs_in_the_guest(
    change: dict[str, Any], pools: list[dict[str, Any]], why: str
) -> None:
    found = obstacle(replace(params(), **{"hidden_networks": (), **change}), pools)
    assert why in found
    assert bool(found) == bool(why)


@pytest.mark.parametrize(
    ("given", "found"),
    [("10.0.0.7", "10.0.0.7:50051"), ("fd00::7", "[fd00::7]:50051"), ("", "")],
)
def test_a_source_has_the_address_of_its_service(given: str, found: str) -> None:
    assert address({"spec": {"clusterIP": given}}) == found
    assert address(None) == ""


def test_the_image_of_a_catalog_is_no_part_of_the_control_plane() -> None:
    made = parts.deployment(params(), "redhat-operators", "r.test/c@sha256:" + "a" * 64)
    pod = made["spec"]["template"]
    assert pod["metadata"]["labels"].keys() & {LABEL_COMPONENT, names.LABEL_CONTROL_PLANE_NAMESPACE} == set()
    assert pod["spec"]["automountServiceAccountToken"] is False
    (container,) = pod["spec"]["containers"]
    assert "command" not in container and container["securityContext"]["allowPrivilegeEscalation"] is False
    selected = parts.service(params(), "redhat-operators")["spec"]["selector"]
    assert selected.items() <= pod["metadata"]["labels"].items()
    assert made["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_only_machines_of_the_cluster_ask_catalogs_and_these_ask_nobody() -> None:
    spec = parts.policy(params())["spec"]
    (rule,) = spec["ingress"]
    (peer,) = rule["from"]
    assert peer["podSelector"]["matchLabels"][names.LABEL_INFRA_ID] == params().infra_id
    assert rule["ports"] == [{"port": parts.PORT, "protocol": "TCP"}]
    assert "Egress" in spec["policyTypes"] and "egress" not in spec
