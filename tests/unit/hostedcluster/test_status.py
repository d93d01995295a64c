from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from tests.support.unit.hostedcluster import cluster, deployment, etcd

from hcp.api import conditions as c
from hcp.api.pause import Pause
from hcp.controlplane.params import Endpoint
from hcp.etcd.membership import Record
from hcp.guest.state import GuestState, Part
from hcp.hostedcluster import ignored_fields, projected_status, status
from hcp.hostedcluster.observed import IngressState, Observed, ReleaseState
from hcp.runtime.conditions import get_condition
from hcp.runtime.reconcile import status_patch

NOW, LATER = "2026-01-01T00:00:10Z", "2026-01-01T00:01:00Z"
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def healthy(**changes: Any) -> Observed:
    seen = Observed(
        release=ReleaseState(version="1.36.3", image="registry.example/release:1", arch="AMD64"),
        api_endpoint=Endpoint("10.88.0.65", 6443),
        etcd=etcd(),
        deployments={n: deployment(n) for n in PARTS},
        api_health="",
        kubeconfig="demo-admin-kubeconfig",
        guest=inside(waiting=("a ready node",)),
    )
    return replace(seen, **changes)


def inside(*, well: bool = False, nodes: int = 0, version: str = "1.36.3", **changes: Any) -> GuestState:
    """A guest with the parts that every release has."""
    names = (("DaemonSet", "konnectivity-agent"), ("DaemonSet", "kube-proxy"), ("Deployment", "coredns"))
    parts = tuple(Part(kind, name, well, well, well) for kind, name in names)
    known = GuestState(reachable=True, nodes=nodes, ready_nodes=nodes, parts=parts, version=version)
    return replace(known, **changes)


def verdict(result: dict[str, Any], kind: str) -> tuple[str, str]:
    found = get_condition(result["conditions"], kind)
    assert found is not None, kind
    return found["status"], found["reason"]


def message(result: dict[str, Any], kind: str) -> str:
    return str((get_condition(result["conditions"], kind) or {})["message"])


def test_a_healthy_cluster_is_available() -> None:
    result = status.compute(cluster(), healthy(), NOW)
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert message(result, "Available") == "The hosted control plane is available"
    assert result["controlPlaneEndpoint"] == {"host": "10.88.0.65", "port": 6443}
    assert result["kubeconfig"] == {"name": "demo-admin-kubeconfig"}
    assert "kubeadminPassword" not in result
    assert result["payloadArch"] == "AMD64"


def test_equal_facts_give_an_equal_status_whatever_the_time() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    assert status_patch(made["status"], status.compute(made, healthy(), LATER)) is None


def test_a_new_process_that_has_not_asked_yet_changes_nothing() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    assert status_patch(made["status"], status.compute(made, healthy(api_health=None, guest=None), LATER)) is None


def test_without_nodes_the_version_stays_partial_and_says_why() -> None:
    result = status.compute(cluster(), healthy(), NOW)
    assert result["version"]["history"][0]["state"] == "Partial"
    assert result["controlPlaneVersion"]["history"][0]["state"] == "Completed"
    assert verdict(result, "Progressing") == ("True", "Progressing")
    assert "no nodes" in message(result, "Progressing")


def test_while_api_servers_wait_for_members_of_etcd_no_version_is_reached() -> None:
    waits = "1 of 3 members of etcd are new, kube-apiserver follows them"
    result = status.compute(cluster(), healthy(guest=inside(well=True, nodes=2), members_first=waits), NOW)
    for part in ("version", "controlPlaneVersion"):
        assert result[part]["history"][0]["state"] == "Partial"
    assert message(result, "Progressing") == f"The control plane is being rolled out: {waits}"


def test_with_everything_running_in_the_guest_the_version_is_completed() -> None:
    result = status.compute(cluster(), healthy(guest=inside(well=True, nodes=2)), NOW)
    assert result["version"]["history"][0] | {"startedTime": "", "completionTime": ""} == {
        "state": "Completed",
        "startedTime": "",
        "completionTime": "",
        "version": "1.36.3",
        "image": "registry.example/release:1",
        "verified": False,
    }
    assert verdict(result, "Progressing") == ("False", "AsExpected")


def test_what_a_phase_could_not_say_or_nobody_answered_yet_reaches_no_version() -> None:
    whole = inside(well=True, nodes=2)
    for changes in ({"errors": {"ingress": "forbidden"}}, {"ingress": IngressState(None)}):
        result = status.compute(cluster(), healthy(guest=whole, **changes), NOW)
        assert result["version"]["history"][0]["state"] == "Partial", changes


def test_availability_is_decided_in_order() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"waiting_for": ["no address"]}, "WaitingOnInfrastructureReady"),
        ({"etcd": None}, "StatefulSetNotFound"),
        ({"etcd": etcd(0)}, "EtcdWaitingForQuorum"),
        ({"deployments": {}}, "NotFound"),
        ({"kubeconfig": ""}, "KubeconfigWaitingForCreate"),
        ({"api_health": None}, "WaitingForAvailable"),
        ({"api_health": "refused"}, "KASLoadBalancerNotReachable"),
        ({"deployments": {PARTS[0]: deployment(PARTS[0])}}, "WaitingForAvailable"),
        ({"config_problems": ["bad"], "etcd": None}, "InvalidConfiguration"),
        ({"unsupported": ["bad"], "etcd": None}, "UnsupportedHostedCluster"),
        ({"release": ReleaseState(reason="InvalidImage", problem="no such image"), "etcd": None}, "InvalidImage"),
    ]
    for changes, reason in cases:
        result = status.compute(cluster(), healthy(**changes), NOW)
        assert verdict(result, "Available") == ("False", reason), changes


def test_available_says_what_is_really_waited_for() -> None:
    def said(**changes: Any) -> str:
        return message(status.compute(cluster(), healthy(api_health=None, guest=None, **changes), NOW), "Available")

    no_pods = {n: deployment(n, available=False) for n in PARTS}
    both = said(etcd=etcd(0), deployments={}, waiting_for=["no address for kube-apiserver"])
    assert both == "Waiting for etcd to reach quorum, 0 of 1 are ready; no address for kube-apiserver"
    assert said(etcd=etcd(0), deployments=no_pods) == "Waiting for etcd to reach quorum, 0 of 1 are ready"
    assert said(deployments={}, waiting_for=["no address for kube-apiserver"]) == "no address for kube-apiserver"
    assert "Kube APIServer deployment" in said(deployments=no_pods)
    assert said().endswith("waiting for the first answer of the hosted API at https://10.88.0.65:6443")
    assert said(errors={"published-certificates": "forbidden"}) == "published-certificates: forbidden"


def test_a_default_that_acts_in_part_is_told_and_nothing_is_wrong() -> None:
    made = cluster(dns={"baseDomain": "example.org"})
    partly = ignored_fields.acted_on_in_part(made["spec"])
    result = status.compute(made, healthy(partly_acted=partly), NOW)
    assert verdict(result, "AllFieldsHonoured") == ("True", "AsExpected")
    assert "dns.baseDomain" in message(result, "AllFieldsHonoured")
    also = status.compute(made, healthy(partly_acted=partly, unacted=["fips"]), NOW)
    assert verdict(also, "AllFieldsHonoured") == ("False", "FieldsNotHonoured")
    assert "fips" in message(also, "AllFieldsHonoured")
    assert "dns.baseDomain" in message(also, "AllFieldsHonoured")
    assert ignored_fields.acted_on_in_part(cluster()["spec"]) == []


def test_a_lost_controller_does_not_make_an_available_cluster_unavailable() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    parts = {n: deployment(n, available=n != PARTS[1]) for n in PARTS}
    result = status.compute(made, healthy(deployments=parts), LATER)
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert verdict(result, "Degraded") == ("True", "UnavailableReplicas")


def test_a_missing_member_of_etcd_is_degraded_and_the_rest_serves() -> None:
    result = status.compute(cluster(), healthy(etcd=etcd(2, 3)), NOW)
    assert verdict(result, "EtcdAvailable") == ("True", "QuorumAvailable")
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert verdict(result, "Degraded") == ("True", "UnavailableReplicas")
    assert message(result, "Degraded") == "etcd misses 1 of 3 members"
    assert verdict(status.compute(cluster(), healthy(etcd=etcd(3, 3)), NOW), "Degraded") == ("False", "AsExpected")


def test_an_etcd_that_sleeps_misses_nothing() -> None:
    assert verdict(status.compute(cluster(), healthy(etcd=etcd(0, 0)), NOW), "Degraded") == ("False", "AsExpected")


def test_every_part_that_misses_replicas_is_named() -> None:
    parts = {n: deployment(n, available=n != PARTS[0]) for n in PARTS}
    short, made = healthy(etcd=etcd(0), deployments=parts), cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    result = status.compute(made, short, LATER)
    assert message(result, "Degraded") == "etcd misses 1 of 1 members; kube-apiserver misses 1 replicas"


def test_while_a_control_plane_starts_for_the_first_time_not_every_part_is_a_write() -> None:
    none = {n: deployment(n, available=False) for n in PARTS}
    some = none | {PARTS[1]: deployment(PARTS[1])}
    first = status.compute(cluster(), healthy(etcd=etcd(0), deployments=none, api_health=None), NOW)
    assert verdict(first, "Degraded") == ("True", "UnavailableReplicas")
    assert (
        status_patch(first, status.compute(cluster(), healthy(etcd=etcd(0), deployments=some, api_health=None), NOW))
        is None
    )
    pulled = {PARTS[0]: "pod x: image y cannot be pulled"}
    stuck = status.compute(cluster(), healthy(deployments=none, troubles=pulled), NOW)
    assert pulled[PARTS[0]] in message(stuck, "Degraded")


def test_a_lost_quorum_is_told_with_the_way_back() -> None:
    made = cluster()
    coming = status.compute(made, healthy(etcd=etcd(1, 3)), NOW)
    assert message(coming, "EtcdAvailable") == "Waiting for etcd to reach quorum, 1 of 3 are ready", (
        "it has yet to come"
    )
    made["status"] = status.compute(made, healthy(etcd=etcd(3, 3)), NOW)
    lost = status.compute(made, healthy(etcd=etcd(1, 3)), LATER)
    for kind in ("EtcdAvailable", "Available"):
        assert verdict(lost, kind) == ("False", "EtcdWaitingForQuorum")
        assert message(lost, kind).startswith(
            "Waiting for etcd to reach quorum, 1 of 3 are ready. Nothing can be written"
        )
        assert "hcp restore" in message(lost, kind)


def test_a_release_that_does_not_come_up_says_why() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(guest=inside(well=True, nodes=2)), NOW)
    made["spec"]["release"]["image"] = "registry.example/release:2"
    parts = {n: deployment(n) for n in PARTS}
    # The new pod beside the old one, which serves.
    parts[PARTS[0]]["status"] |= {"replicas": 2, "unavailableReplicas": 1}
    pulled = "pod kube-apiserver-b: image x cannot be pulled: not found"
    new = ReleaseState(version="1.37.0", image="registry.example/release:2", arch="AMD64")
    seen = healthy(release=new, deployments=parts, troubles={PARTS[0]: pulled}, guest=inside(well=True, nodes=2))
    result = status.compute(made, seen, LATER)
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert verdict(result, "Degraded") == ("True", "UnavailableReplicas")
    assert message(result, "Degraded") == f"kube-apiserver misses 1 replicas: {pulled}"
    assert verdict(result, "Progressing") == ("True", "Progressing")
    assert message(result, "Progressing") == f"The control plane is being rolled out: kube-apiserver: {pulled}"
    assert result["controlPlaneVersion"]["history"][0]["state"] == "Partial"


def test_what_keeps_a_first_control_plane_is_told_where_people_look() -> None:
    why = "pod x: container x ends with code 1: bad flag"
    no_pods = {n: deployment(n, available=False) for n in PARTS}
    for changes, kind, name in (
        ({"etcd": etcd(0)}, "EtcdAvailable", "etcd"),
        ({"deployments": no_pods}, "KubeAPIServerAvailable", "kube-apiserver"),
    ):
        result = status.compute(cluster(), healthy(guest=None, troubles={name: why}, **changes), NOW)
        for told in (kind, "Available", "Progressing"):
            assert message(result, told).endswith(f": {why}"), told
    scheduler = healthy(deployments={**no_pods, PARTS[0]: deployment(PARTS[0])}, troubles={PARTS[2]: why})
    assert message(status.compute(cluster(), scheduler, NOW), "Available").endswith(f"kube-scheduler: {why}")
    refused = deployment(PARTS[0], available=False)
    refused["status"]["conditions"].append({"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"})
    result = status.compute(cluster(), healthy(deployments={PARTS[0]: refused}), NOW)
    assert message(result, "Available").endswith(": exceeded quota")


def test_a_broken_release_keeps_what_runs() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    broken = healthy(release=ReleaseState(reason="InvalidImage", problem="registry is gone"))
    result = status.compute(made, broken, LATER)
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert verdict(result, "ValidReleaseImage") == ("False", "InvalidImage")
    assert verdict(result, "Progressing") == ("False", "Blocked")


def test_etcd_says_why_its_volume_does_not_come() -> None:
    result = status.compute(cluster(), healthy(etcd=etcd(0), etcd_problem="no default StorageClass"), NOW)
    assert "no default StorageClass" in message(result, "EtcdAvailable")


def test_high_availability_tells_when_it_is_not_spread() -> None:
    result = status.compute(
        cluster(controllerAvailabilityPolicy="HighlyAvailable"), healthy(unspread="only 1 node"), NOW
    )
    assert verdict(result, c.CONTROL_PLANE_SPREAD) == ("False", "TooFewNodes")
    single = status.compute(cluster(), healthy(), NOW)
    assert get_condition(single["conditions"], c.CONTROL_PLANE_SPREAD) is None


def test_a_pause_changes_one_condition_only() -> None:
    made = cluster()
    made["status"] = status.compute(made, healthy(), NOW)
    until = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    result = status.compute(made, Observed(pause=Pause(True, until)), LATER)
    assert verdict(result, "ReconciliationActive") == ("False", "ReconciliationPaused")
    assert verdict(result, "Available") == ("True", "AsExpected")


def test_errors_are_told() -> None:
    result = status.compute(cluster(), healthy(errors={"cluster-api": "forbidden"}), NOW)
    assert verdict(result, "ReconciliationSucceeded") == ("False", "ReconciliationError")
    assert "cluster-api: forbidden" in message(result, "ReconciliationSucceeded")


def test_patch_drops_what_is_gone() -> None:
    assert status_patch({"a": 1, "b": 2}, {"a": 1}) == {"status": {"b": None}}
    assert status_patch({"a": 1}, {"a": 1}) is None


def test_the_projection_never_forgets_that_it_was_initialized() -> None:
    up = status.compute(cluster(), healthy(), NOW)
    down = status.compute(cluster(), healthy(api_health="refused"), NOW)
    first = projected_status.projected({}, up, 0)
    assert first["initialized"] is first["ready"] is True
    second = projected_status.projected(first, down, 0)
    assert (second["ready"], second["initialized"]) == (False, True)
    assert second["externalManagedControlPlane"] is True


def test_the_projection_repeats_words_only_when_the_control_plane_has_come_up() -> None:
    down = status.compute(cluster(), healthy(etcd=etcd(0)), NOW)
    first = projected_status.projected({}, down, 0)
    worded = {**down, "conditions": [{**one, "message": "other words"} for one in down["conditions"]]}
    assert projected_status.projected(first, worded, 0)["conditions"] == first["conditions"]
    turned = {**down, "conditions": [{**one, "reason": "Other"} for one in down["conditions"]]}
    assert projected_status.projected(first, turned, 0)["conditions"] != first["conditions"]
    up = projected_status.projected(first, status.compute(cluster(), healthy(), NOW), 0)
    again = projected_status.projected(up, worded, 0)
    assert {one["message"] for one in again["conditions"]} == {"other words"}


def test_a_cluster_in_line_says_so_and_a_step_of_the_line_is_no_write() -> None:
    after = status.compute(cluster(), Observed(ahead=3), NOW)
    assert verdict(after, "Available") == ("False", "WaitingForTurn")
    assert after == status.compute(cluster(), Observed(ahead=4), NOW)


def foreign() -> dict[str, Any]:
    tls = {"clientSecret": {"name": "login"}}
    return cluster(
        etcd={"managementType": "Unmanaged", "unmanaged": {"endpoint": "https://etcd.example.com:2379", "tls": tls}}
    )


def test_somebody_elses_etcd_is_available_as_far_as_we_can_tell() -> None:
    result = status.compute(foreign(), healthy(etcd=None, foreign_etcd=""), NOW)
    for kind in ("EtcdAvailable", "UnmanagedEtcdAvailable"):
        assert verdict(result, kind) == ("True", "AsExpected")
        assert "etcd.example.com" in message(result, kind)
    assert verdict(result, "Available") == ("True", "AsExpected")
    assert get_condition(status.compute(cluster(), healthy(), NOW)["conditions"], "UnmanagedEtcdAvailable") is None


def test_a_login_that_cannot_be_used_is_named() -> None:
    result = status.compute(foreign(), healthy(etcd=None, deployments={}, foreign_etcd="it has no key x"), NOW)
    assert verdict(result, "UnmanagedEtcdAvailable") == ("False", "UnmanagedEtcdMisconfigured")
    assert verdict(result, "EtcdAvailable") == ("False", "UnmanagedEtcdMisconfigured")
    assert "it has no key x" in message(result, "Available")


def test_what_is_known_of_somebody_elses_etcd_stays_while_nobody_looks() -> None:
    made = foreign()
    made["status"] = status.compute(made, healthy(etcd=None, foreign_etcd=""), NOW)
    after = status.compute(made, healthy(etcd=None), LATER)
    assert verdict(after, "UnmanagedEtcdAvailable") == ("True", "AsExpected")


def test_members_that_join_or_leave_are_told_and_a_learner_costs_no_majority() -> None:
    many = cluster(controllerAvailabilityPolicy="HighlyAvailable")
    joining = healthy(etcd=etcd(1, 2), etcd_record=Record(2, joining=1), etcd_change="etcd grows to 3 members")
    found = get_condition(status.compute(many, joining, NOW)["conditions"], c.ETCD_AVAILABLE)
    assert found is not None
    assert (found["status"], found["message"]) == ("True", "1 of 2 members are ready; etcd grows to 3 members")
    lost = healthy(etcd=etcd(1, 3), etcd_record=Record(3), etcd_change="nobody can be replaced")
    found = get_condition(status.compute(many, lost, NOW)["conditions"], c.ETCD_AVAILABLE)
    assert found is not None
    assert found["status"] == "False"
    assert "nobody can be replaced" in found["message"]
