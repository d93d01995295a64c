"""What is said about a cluster from its status."""

from __future__ import annotations

from typing import Any

from hcp.cli.shared import health, machine_messages
from hcp.cli.shared.skew import cluster_version, skew_problem
from hcp.cli.status.run import not_worth_a_line, storage_line, waiting_for
from hcp.cli.status.text import screen
from hcp.nodepool import ignored_fields, scaling

Object = dict[str, Any]


def cond(kind: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def cluster(*conditions: Object, history: list[Object] | None = None) -> Object:
    return {
        "metadata": {"name": "demo", "namespace": "clusters"},
        "spec": {"platform": {"type": "KubeVirt"}, "release": {"image": "r/x:1"}},
        "status": {"conditions": list(conditions), "version": {"history": history or []}},
    }


def pool(have: int, wanted: int | None, *conditions: Object) -> Object:
    spec: Object = {"clusterName": "demo"} | ({} if wanted is None else {"replicas": wanted})
    status = {"replicas": have, "conditions": list(conditions)}
    return {"metadata": {"name": "demo"}, "spec": spec, "status": status}


UP = [cond(kind, "True") for kind, _ in health.PIECES]


def test_only_conditions_out_of_order_are_problems() -> None:
    found = cluster(cond("Available", "True"), cond("Degraded", "False"), cond("EtcdAvailable", "Unknown", "X"))
    assert [item["type"] for item in health.problems(found)] == ["EtcdAvailable"]
    assert (
        health.problems(cluster(cond("AutoscalingEnabled", "False"), cond("Degraded", "True")))[0]["type"] == "Degraded"
    )


def test_the_first_missing_piece_is_explained() -> None:
    found = cluster(
        cond("ValidReleaseImage", "True"),
        cond("InfrastructureReady", "True"),
        cond("EtcdAvailable", "False", "EtcdWaitingForQuorum", "0 of 1 members ready"),
    )
    line = health.control_plane_line(found)
    assert line == "release, addresses ready; etcd waits (EtcdWaitingForQuorum: 0 of 1 members ready)"
    assert health.control_plane_line(cluster()) == "nothing ready yet; release waits (not reported yet)"


def test_rollout_needs_a_completion_time() -> None:
    begun = cluster(*UP, history=[{"state": "Partial", "version": "1.36.3", "completionTime": None}])
    assert not health.at_its_version(begun)
    assert health.control_plane_line(begun) == "control plane available, rollout not completed"
    done = cluster(*UP, history=[{"state": "Completed", "version": "1.36.3", "completionTime": "2026-01-01T00:00:00Z"}])
    assert health.at_its_version(done)
    assert health.version(done) == "1.36.3"
    assert waiting_for(done, [pool(2, 2)]) == []


def test_an_unfinished_rollout_is_explained() -> None:
    found = cluster(
        *UP, cond("Progressing", "True", "Progressing"), cond("ReconciliationSucceeded", "False", "X", "no y")
    )
    assert health.control_plane_line(found) == "control plane available, rollout not completed (X: no y)"


def test_nothing_is_wrong_with_having_no_nodes_when_none_are_wanted() -> None:
    assert health.problems(pool(0, 0, cond("AllMachinesReady", "False", "NotFound"))) == []
    assert health.problems(pool(0, 1, cond("AllMachinesReady", "False", "NotFound"))) != []
    assert health.problems(cluster(cond("DataPlaneConnectionAvailable", "Unknown", "NoWorkerNodesAvailable"))) == []


def test_pools() -> None:
    assert machine_messages.pool_line(pool(2, 2)) == "node pool demo: 2 of 2 nodes"
    waiting = pool(1, 2, cond("Ready", "False", "WaitingForAvailableMachines", "Minimum availability requires 2"))
    assert machine_messages.pool_line(waiting).endswith("1 of 2 nodes (waiting for nodes)")
    assert not health.pool_ready(pool(2, 2, cond("UpdatingVersion", "True")))
    assert health.pool_ready(pool(0, None))
    assert "0 of 0 nodes" in machine_messages.pool_line(pool(0, None))


def test_a_pool_with_autoscaling_shows_its_bounds_and_whether_they_have_no_effect() -> None:
    spec = {"autoScaling": {"min": 2, "max": 4}}
    scales = scaling.verdict(spec, {}, {})
    said = {"AllFieldsHonoured": ignored_fields.fields(spec, scales[2]), "AutoscalingEnabled": scales}
    made = pool(1, None, *(cond(kind, str(ok), reason, text) for kind, (ok, reason, text) in said.items()))
    made["spec"] |= spec
    assert machine_messages.pool_line(made) == "node pool demo: 1 of 2-4 nodes (waiting)"
    assert [item["type"] for item in health.problems(made)] == ["AllFieldsHonoured"]
    assert (
        "autoScaling (The release of the control plane has no cluster-autoscaler" in health.problems(made)[0]["message"]
    )


def test_bounds_that_contradict_each_other_are_a_problem() -> None:
    made = pool(0, 1, cond("AutoscalingEnabled", "False", "ValidationFailed", "only one of"))
    assert "ValidationFailed: only one of" in machine_messages.pool_line(made)


def test_a_field_without_effect_is_never_why_something_waits() -> None:
    without = cond("AllFieldsHonoured", "False", "FieldsNotHonoured", "fips")
    progress = cond("Progressing", "True", "Progressing", "no nodes yet")
    assert health.control_plane_line(cluster(*UP, without, progress)).endswith("(Progressing: no nodes yet)")
    assert [item["type"] for item in health.problems(cluster(without))] == ["AllFieldsHonoured"]


def test_control_plane_version_of_a_brand_new_cluster_is_unknown() -> None:
    assert cluster_version({"metadata": {}, "spec": {}}) == ""
    assert cluster_version(cluster(history=[{"state": "Partial", "version": "1.36.0"}])) == "1.36.0"


def test_version_skew() -> None:
    assert skew_problem("1.36.3", "1.36.3") == ""
    assert skew_problem("1.33.0", "1.36.3") == ""
    assert "newer" in skew_problem("1.37.0", "1.36.3")
    assert "newer" in skew_problem("1.36.4", "1.36.3")
    assert "4 minor versions behind" in skew_problem("1.32.0", "1.36.3")
    assert skew_problem("4.22.1", "5.0.0") == ""
    assert "newer" in skew_problem("5.1.0", "5.0.3")


def test_the_screen_has_everything() -> None:
    problem = {"type": "EtcdAvailable", "status": "False", "reason": "EtcdWaitingForQuorum", "message": "0 of 1"}
    data = {
        "name": "demo",
        "namespace": "clusters",
        "platform": "KubeVirt",
        "infraID": "demo-abcde",
        "controlPlaneNamespace": "clusters-demo",
        "deleting": False,
        "asleep": False,
        "sleep": "",
        "paused": "",
        "release": "r/x:1",
        "version": "1.35.0",
        "rollout": {"version": "1.36.3", "state": "Partial"},
        "endpoints": {"API server": "https://10.0.0.1:6443"},
        "kubeconfig": "demo-admin-kubeconfig",
        "available": False,
        "problems": [problem],
        "pods": [
            {"name": "etcd-0", "phase": "Pending", "ready": False, "restarts": 2, "why": "Unschedulable: no disk"}
        ],
        "storage": "",
        "machineControllers": [{"name": "cluster-api", "namespace": "hypershift", "ready": 1, "wanted": 1}],
        "nodePools": [
            {"name": "demo", "nodes": 1, "desired": "2", "version": "1.35.0", "ready": False, "problems": [problem]}
        ],
        "machines": [
            {"name": "demo-x", "pool": "demo", "phase": "Provisioning", "node": "", "vm": "Scheduling", "why": "Z: y"}
        ],
        "waitingFor": ["etcd"],
    }
    text = screen(data)
    for words in (
        "clusters/demo: not available yet",
        "1.36.3 (Partial, before that 1.35.0)",
        "https://10.0.0.1:6443",
        "0 of 1 pods ready in namespace clusters-demo, 2 restarts",
        "cluster-api 1/1 in namespace hypershift",
        "  EtcdAvailable   False    EtcdWaitingForQuorum   0 of 1\n",
        "  demo   EtcdAvailable   False    EtcdWaitingForQuorum   0 of 1\n",
        "etcd-0: Pending Unschedulable: no disk",
        "1 of 2",
        "Provisioning",
        "Waiting for",
    ):
        assert words in text, words
    assert "no pods seen in namespace clusters-demo" in screen({**data, "pods": []})


def test_the_reason_of_what_is_well_is_not_repeated() -> None:
    assert health.explain({"reason": "AsExpected", "message": "1 of 2 machines"}) == "1 of 2 machines"
    assert health.explain({"reason": "AsExpected", "message": ""}) == "AsExpected"
    assert health.explain({"reason": "NoDisk", "message": "full"}) == "NoDisk: full"


def test_machines_that_cannot_move_are_no_problem_where_there_is_one_node() -> None:
    here = {"spec": {"platform": {"type": "KubeVirt", "kubevirt": {}}}}
    elsewhere = {"spec": {"platform": {"type": "KubeVirt", "kubevirt": {"credentials": {"infraNamespace": "vms"}}}}}
    node: dict[str, object] = {"metadata": {"name": "one"}}
    assert not_worth_a_line(here, [node]) == {"KubeVirtNodesLiveMigratable"}
    # Of another cluster's nodes, or of those nobody may list, nothing is known.
    for cluster, nodes in ((here, [node, node]), (elsewhere, [node]), (here, [])):
        assert not_worth_a_line(cluster, nodes) == frozenset()


def test_storage_is_its_classes_and_how_many_volumes_there_are() -> None:
    works = cluster(cond("StorageAvailable", "True", "AsExpected", "StorageClasses: gold (default), tin"))
    assert storage_line(works, 0) == "StorageClasses: gold (default), tin"
    assert storage_line(works, 1) == "StorageClasses: gold (default), tin; 1 volume"
    assert storage_line(works, 12) == "StorageClasses: gold (default), tin; 12 volumes"
    # What does not work is among the problems; a cluster without storage has no line.
    broken = cluster(cond("StorageAvailable", "False", "NoStorageClass", "No StorageClass is mapped"))
    assert storage_line(broken, 3) == storage_line(cluster(), 3) == ""
    assert [one["type"] for one in health.problems(broken)] == ["StorageAvailable"]
