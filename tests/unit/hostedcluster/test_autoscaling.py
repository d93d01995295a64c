"""The autoscaler of node pools: its flags, its pod, its rights, and when there is one. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.controlplane import IMAGES, params

from hcp.api import names
from hcp.api.autoscaling import autoscaling as schema
from hcp.controlplane import autoscaler
from hcp.controlplane.autoscaler_flags import flags
from hcp.guest import autoscaling, manifests
from hcp.guest.objects import GuestParams
from hcp.hostedcluster import ignored_fields
from hcp.install import autoscaling as installed
from hcp.install import rights

WITH = {**IMAGES, names.AUTOSCALER: "r/cluster-autoscaler"}
ALL: dict[str, Any] = {
    "scaling": "ScaleUpAndScaleDown",
    "scaleDown": {
        "delayAfterAddSeconds": 60,
        "delayAfterDeleteSeconds": 0,
        "delayAfterFailureSeconds": 30,
        "unneededDurationSeconds": 120,
        "utilizationThresholdPercent": 35,
    },
    "balancingIgnoredLabels": ["example.com/rack"],
    "maxNodesTotal": 12,
    "maxPodGracePeriod": 300,
    "maxNodeProvisionTime": "1h30m",
    "maxFreeDifferenceRatioPercent": 25,
    "podPriorityThreshold": -5,
    "expanders": ["Random", "LeastWaste", "Random"],
}


def test_every_field_becomes_a_flag() -> None:
    assert set(flags(ALL)) == {
        "--expander=random,least-waste",
        "--scale-down-enabled=true",
        "--scale-down-delay-after-add=60s",
        "--scale-down-delay-after-delete=0s",
        "--scale-down-delay-after-failure=30s",
        "--scale-down-unneeded-time=120s",
        "--scale-down-utilization-threshold=0.35",
        "--max-nodes-total=12",
        "--max-graceful-termination-sec=300",
        "--expendable-pods-priority-cutoff=-5",
        "--max-node-provision-time=5400s",
        "--max-free-difference-ratio=0.25",
        f"--balancing-ignore-label={names.LABEL_NODEPOOL}",
        "--balancing-ignore-label=example.com/rack",
    }


def test_no_field_of_the_schema_was_forgotten() -> None:
    assert set(ALL) == set(schema()["properties"])
    assert set(ALL["scaleDown"]) == set(schema()["properties"]["scaleDown"]["properties"])


def test_without_a_word_it_chooses_as_the_api_says() -> None:
    assert flags({}) == [
        "--expander=priority,least-waste",
        "--scale-down-enabled=true",
        "--max-free-difference-ratio=0.10",
        f"--balancing-ignore-label={names.LABEL_NODEPOOL}",
    ]
    assert "--scale-down-enabled=false" in flags({"scaling": "ScaleUpOnly"})


@pytest.fixture
def made() -> dict[str, Any]:
    return autoscaler.deployment(params(images=WITH), ALL, "hash")


def test_the_pod_can_do_nothing_but_call_two_apis(made: dict[str, Any]) -> None:
    pod = made["spec"]["template"]
    main = pod["spec"]["containers"][0]
    assert made["spec"]["replicas"] == 1 and made["spec"]["strategy"] == {"type": "Recreate"}
    assert main["securityContext"]["readOnlyRootFilesystem"] is True and pod["spec"]["securityContext"]["runAsNonRoot"]
    assert pod["spec"]["serviceAccountName"] == autoscaler.ACCOUNT
    assert pod["metadata"]["labels"][names.LABEL_NEED_MANAGEMENT_API] == "true"
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["guest"]


def test_an_idle_one_writes_nothing_and_sees_its_own_namespace_only(made: dict[str, Any]) -> None:
    words = made["spec"]["template"]["spec"]["containers"][0]["command"]
    assert {"--leader-elect=false", "--write-status-configmap=false"} <= set(words)
    namespace = made["metadata"]["namespace"]
    assert f"--node-group-auto-discovery=clusterapi:namespace={namespace}" in words


def test_an_administrator_may_name_another_image() -> None:
    assert autoscaler.image(params(images=WITH)) == "r/cluster-autoscaler"
    assert autoscaler.image(params()) == ""
    assert autoscaler.image(params(annotations={names.ANNOTATION_AUTOSCALER_IMAGE: "r/mine"})) == "r/mine"


def test_the_account_is_bound_in_its_namespace_to_a_role_that_the_operator_may_bind() -> None:
    bound = autoscaler.account(params())[1]
    assert bound["kind"] == "RoleBinding" and bound["roleRef"]["name"] in rights.HOSTED_ROLES
    assert [one["metadata"]["name"] for one in installed.objects()] == [bound["roleRef"]["name"]]
    verbs = {verb for rule in installed.hosted_rules() for verb in rule["verbs"]}
    assert verbs <= {"get", "list", "watch", "patch", "update"}, "it makes and deletes nothing"


def guest(*, scaled: bool) -> list[dict[str, Any]]:
    given = GuestParams(params(), images=WITH, own_network=True, highly_available=False, autoscaling=scaled)
    return [one for one in manifests.objects(given) if one["metadata"]["name"] == autoscaling.NAME]


def test_inside_it_has_rights_only_while_a_pool_follows_the_load() -> None:
    assert not guest(scaled=False)
    assert [one["kind"] for one in guest(scaled=True)] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert not [rule for rule in autoscaling.rules() if "secrets" in rule["resources"]]


def test_knobs_are_named_only_where_nothing_turns_them() -> None:
    assert ignored_fields.not_acted_on({"autoscaling": ALL}) == []
    named = ignored_fields.autoscaling_not_in_release({"autoscaling": ALL})
    assert set(named) == {f"autoscaling.{field}" for field in ALL} - {"autoscaling.scaling"}
