"""A pool of virtual machines follows the load: from nothing to as many nodes as ten pods need, and back to nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.support.e2e.hosted_tools import SMALL_VM, Guest, with_one_node
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

NAME = "autoscaling"
CLUSTER = "elastic"
HOSTED = f"clusters-{CLUSTER}"
RELEASE = "release-1.36-autoscaling"
POOL = "load"

pytestmark = pytest.mark.timeout(7200)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("autoscaling"), RELEASE) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def patch(management: Cluster, kind: str, name: str, spec: dict[str, Any]) -> None:
    body = json.dumps({"spec": spec})
    management.kubectl("patch", kind, name, "-n", "clusters", "--type=merge", "-p", body)


def condition(management: Cluster, kind: str) -> dict[str, str]:
    pool = management.get("nodepool", POOL, "-n", "clusters")
    found: dict[str, str] = next(one for one in pool["status"]["conditions"] if one["type"] == kind)
    return found


def nodes_of_the_pool(guest: Guest) -> list[str]:
    found = guest.get("nodes", "-l", "tier=load")["items"]
    return [one["metadata"]["name"] for one in found]


def workload(guest: Guest, replicas: int) -> None:
    labels = {"app": "work"}
    container = {
        "name": "work",
        "image": guest.image(),
        "command": ["sleep", "86400"],
        "resources": {"requests": {"cpu": "150m", "memory": "32Mi"}},
    }
    pod = {"containers": [container], "nodeSelector": {"tier": "load"}, "terminationGracePeriodSeconds": 1}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "work"}, "spec": spec}
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(made))


def test_nothing_of_it_runs_for_pools_with_a_number(management: Cluster) -> None:
    found = [one["metadata"]["name"] for one in management.get("deployments", "-n", HOSTED)["items"]]
    assert "cluster-autoscaler" not in found


def test_a_pool_that_may_be_empty_starts_empty_and_says_its_bounds(management: Cluster) -> None:
    quick = {"delayAfterAddSeconds": 30, "unneededDurationSeconds": 30}
    patch(management, "hostedcluster", CLUSTER, {"autoscaling": {"scaleDown": quick}})
    rendered = hcp(
        *("create", "nodepool", "kubevirt", "--name", POOL, "--cluster-name", CLUSTER, "--render", *SMALL_VM),
        *("--kubeconfig", str(management.kubeconfig)),
    ).stdout
    pool = yaml.safe_load(rendered)
    del pool["spec"]["replicas"]
    pool["spec"] |= {"autoScaling": {"min": 0, "max": 2}, "nodeLabels": {"tier": "load"}}
    management.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pool))
    eventually_sync(lambda: condition(management, "AutoscalingEnabled")["status"] == "True", "it follows the load", 300)

    def runs() -> bool:
        live = management.get("deployment", "cluster-autoscaler", "-n", HOSTED)
        return bool(live["status"].get("availableReplicas") == 1)

    eventually_sync(runs, "the autoscaler runs", 300)
    assert management.get("machinedeployment", POOL, "-n", HOSTED)["spec"]["replicas"] == 0


def test_ten_waiting_pods_get_nodes_and_run(management: Cluster, guest: Guest) -> None:
    workload(guest, 10)

    def available() -> bool:
        return bool(guest.get("deployment", "work")["status"].get("availableReplicas") == 10)

    eventually_sync(available, "ten pods run", 2400)
    assert len(nodes_of_the_pool(guest)) == 2
    assert "its maximum" in condition(management, "AutoscalingEnabled")["message"]


def test_what_waits_beyond_the_maximum_says_why(guest: Guest) -> None:
    workload(guest, 20)

    def told() -> bool:
        events = guest.get("events", "--field-selector", "reason=NotTriggerScaleUp")["items"]
        return any("max node group size" in one["message"] for one in events)

    eventually_sync(told, "an event of a pod that waits", 300)


def test_idle_nodes_go_until_the_pool_is_empty(management: Cluster, guest: Guest) -> None:
    workload(guest, 0)
    eventually_sync(lambda: not nodes_of_the_pool(guest), "the pool is empty again", 2400)
    assert management.get("machinedeployment", POOL, "-n", HOSTED)["spec"]["replicas"] == 0
    assert guest.ready_nodes(), "the pool with a number of its own is as it was"


def test_the_autoscaler_goes_with_the_last_pool_that_wants_it(management: Cluster) -> None:
    patch(management, "nodepool", POOL, {"autoScaling": None, "replicas": 0})

    def gone() -> bool:
        found = [one["metadata"]["name"] for one in management.get("deployments", "-n", HOSTED)["items"]]
        return "cluster-autoscaler" not in found

    eventually_sync(gone, "nothing of it runs", 300)
