"""What a hosted cluster says of its version and its parts, outside and inside alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.unit.hostedcluster import cluster, deployment, etcd
from tests.unit.hostedcluster.test_status import LATER, NOW, PARTS, healthy, inside, message, verdict

from hcp.controlplane.storage_plan import plan
from hcp.guest.platform import operators, version
from hcp.guest.state import Part
from hcp.hostedcluster import cluster_operators, status
from hcp.hostedcluster.observed import ReleaseState, StorageState
from hcp.runtime.conditions import get_condition

ALWAYS = ["dns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "network"]


def names(**changes: Any) -> list[str]:
    return [one.name for one in cluster_operators.found(cluster(), healthy(**changes))]


def reached() -> dict[str, Any]:
    made = cluster()
    made["status"] = status.compute(made, healthy(guest=inside(well=True, nodes=2)), NOW)
    return made


def test_each_part_that_exists_has_an_operator() -> None:
    assert names() == ALWAYS
    with_snapshots = inside(parts=(*inside().parts, Part("Deployment", "csi-snapshot-controller")))
    assert names(guest=with_snapshots) == sorted([*ALWAYS, "csi-snapshot-controller"])
    assert names(storage=StorageState(plan=plan(cluster()["spec"], "ns", None))) == sorted([*ALWAYS, "storage"])
    assert names(storage=StorageState(missing=("csi-external-provisioner",))) == ALWAYS
    assert "etcd" not in names(etcd=None), "somebody else's"


def test_a_cluster_without_nodes_waits_for_them_and_nothing_has_failed() -> None:
    result = status.compute(cluster(), healthy(), NOW)
    assert verdict(result, "ClusterVersionAvailable") == ("False", "NoWorkerNodesAvailable")
    assert verdict(result, "ClusterVersionProgressing") == ("True", "NoWorkerNodesAvailable")
    assert verdict(result, "ClusterVersionSucceeding") == ("True", "AsExpected")
    assert verdict(result, "ClusterVersionReleaseAccepted") == ("True", "PayloadLoaded")
    assert verdict(result, "ClusterVersionUpgradeable") == ("True", "AsExpected")


def test_nothing_of_it_changes_while_the_pods_of_a_control_plane_start_one_by_one() -> None:
    def told(up: int) -> dict[str, Any]:
        parts = {n: deployment(n, available=i < up) for i, n in enumerate(PARTS)}
        result = status.compute(cluster(), healthy(deployments=parts, api_health=None, guest=None), NOW)
        return {x["type"]: x for x in result["conditions"] if x["type"].startswith("ClusterVersion")}

    assert told(0) == told(1) == told(2)


def test_with_every_part_there_the_version_is_reached() -> None:
    result = reached()["status"]
    assert verdict(result, "ClusterVersionAvailable") == ("True", "AsExpected")
    assert verdict(result, "ClusterVersionProgressing") == ("False", "AsExpected")
    assert message(result, "ClusterVersionProgressing") == "Cluster version is 1.36.3"


def test_one_part_that_is_missing_keeps_it_partial() -> None:
    late = inside(well=True, nodes=2)
    late = replace(late, parts=tuple(replace(p, some=p.name != "coredns") for p in late.parts))
    result = status.compute(cluster(), healthy(guest=late), NOW)
    assert result["version"]["history"][0]["state"] == "Partial"
    assert message(result, "ClusterVersionProgressing") == "Working towards 1.36.3: waiting for dns"


def test_parts_that_were_applied_from_the_release_before_do_not_count() -> None:
    old = inside(well=True, nodes=2, version="1.35.0")
    result = status.compute(cluster(), healthy(guest=old), NOW)
    assert result["version"]["history"][0]["state"] == "Partial"
    seen = healthy(guest=old, release=ReleaseState("1.36.4", "registry.example/release:2", "AMD64"))
    found = {one.name: one.version for one in cluster_operators.found(reached(), seen)}
    assert found["dns"] == "1.36.3", "it runs from the release that was reached before"
    assert found["kube-apiserver"] == "1.36.4"


def test_a_version_that_was_reached_can_be_lost_and_stays_in_the_history() -> None:
    made = reached()
    parts = {n: deployment(n, available=n != "kube-scheduler") for n in PARTS}
    result = status.compute(made, healthy(guest=inside(well=True, nodes=2), deployments=parts), LATER)
    assert verdict(result, "ClusterVersionSucceeding") == ("False", "ClusterOperatorNotAvailable")
    assert "kube-scheduler" in message(result, "ClusterVersionSucceeding")
    assert verdict(result, "ClusterVersionAvailable") == ("True", "AsExpected")
    assert result["version"]["history"][0]["state"] == "Completed"
    gone = status.compute(made, healthy(guest=inside(waiting=("a ready node",))), LATER)
    assert verdict(gone, "ClusterVersionSucceeding") == ("False", "NoWorkerNodesAvailable")


def test_fewer_pods_than_wanted_degrade() -> None:
    short = inside(well=True, nodes=2)
    short = replace(short, parts=tuple(replace(p, every=p.name != "kube-proxy") for p in short.parts))
    found = {one.name: one for one in cluster_operators.found(cluster(), healthy(guest=short))}
    assert found["network"].works and found["network"].degraded[0] is True
    assert "kube-proxy" in found["network"].degraded[2]
    two = cluster_operators.found(cluster(), healthy(etcd=etcd(2, 3)))
    assert next(one for one in two if one.name == "etcd").works


def test_a_refused_release_is_told() -> None:
    refused = ReleaseState(reason="InvalidImage", problem="no such image")
    result = status.compute(reached(), healthy(guest=inside(well=True, nodes=2), release=refused), LATER)
    assert verdict(result, "ClusterVersionReleaseAccepted") == ("False", "RetrievePayload")
    assert verdict(result, "ClusterVersionSucceeding") == ("False", "Blocked")


def test_kubelets_that_the_next_minor_would_not_talk_to_hold_it_up() -> None:
    def upgradeable(kubelet: str) -> tuple[str, str]:
        seen = healthy(guest=inside(well=True, nodes=1, kubelet=kubelet))
        return verdict(status.compute(cluster(), seen, NOW), "ClusterVersionUpgradeable")

    assert upgradeable("v1.36.3") == upgradeable("v1.34.0") == upgradeable("") == ("True", "AsExpected")
    assert upgradeable("v1.33.9") == ("False", "KubeletMinorVersionUnsupportedNextUpgrade")


def test_the_inside_says_the_same_in_its_own_words() -> None:
    told = status.compute(cluster(), healthy(), NOW)
    made = version.status(told, 3, NOW)["status"]
    assert made["observedGeneration"] == 3
    assert made["history"][0]["state"] == "Partial" and made["history"][0]["completionTime"] is None
    found = {x["type"]: (x["status"], x["reason"]) for x in made["conditions"]}
    assert found["Failing"] == ("False", "AsExpected")
    assert found["Available"] == ("False", "NoWorkerNodesAvailable")
    assert found["RetrievedUpdates"] == ("False", "NoChannel")
    assert "Upgradeable" not in found


def test_times_move_only_with_the_status() -> None:
    one = cluster_operators.found(cluster(), healthy())[0]
    first = operators.status(one, None, NOW)
    again = operators.status(one, first, LATER)
    assert first == again
    other = operators.status(replace(one, available=(True, "AsExpected", "")), first, LATER)
    available = get_condition(other["status"]["conditions"], "Available")
    assert available is not None and available["lastTransitionTime"] == LATER
