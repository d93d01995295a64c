"""Which classes a guest gets, how its storage driver looks, and what the condition says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.api import conditions as c
from hcp.api import names
from hcp.controlplane import storage, storage_plan
from hcp.controlplane.storage_plan import DEFAULT_CLASS, DEFAULT_SNAPSHOT_CLASS, GuestClass, InfraKnown
from hcp.csi.kubevirt import rights
from hcp.guest import manifests, old_classes
from hcp.guest import storage as inside
from hcp.guest.objects import GuestParams
from hcp.guest.state import NOT_LOOKED_AT, GuestState
from hcp.guest.storage import GuestStorage
from hcp.hostedcluster.observed import StorageState
from hcp.hostedcluster.phases.storage import not_available
from hcp.hostedcluster.storage_status import verdict

STORAGE_IMAGES = {name: f"r/{name}" for name in (*storage_plan.NEEDED, *storage_plan.FOR_SNAPSHOTS)}


def infra_class(name: str, *, default: bool = False, grows: bool = True) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {DEFAULT_CLASS: "true"} if default else {}}
    return {"metadata": metadata, "provisioner": f"{name}.example.com", "allowVolumeExpansion": grows}


def profile(name: str, mode: str, kind: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"claimPropertySets": [{"accessModes": [mode], "volumeMode": kind}]}}


SNAPSHOT_CLASS = {
    "metadata": {"name": "snap", "annotations": {DEFAULT_SNAPSHOT_CLASS: "true"}},
    "driver": "fast.example.com",
}
KNOWN = InfraKnown(
    (infra_class("fast", default=True), infra_class("plain", grows=False)),
    (profile("fast", "ReadWriteMany", "Block"), profile("plain", "ReadWriteOnce", "Filesystem")),
    (SNAPSHOT_CLASS,),
)


def spec(driver: dict[str, Any] | None = None) -> dict[str, Any]:
    kubevirt = {} if driver is None else {"storageDriver": driver}
    return {"infraID": "id", "platform": {"type": "KubeVirt", "kubevirt": kubevirt}}


def manual(classes: list[tuple[str, str, str]], snapshots: Sequence[tuple[str, str, str]] = ()) -> dict[str, Any]:
    return spec(
        {
            "type": "Manual",
            "manual": {
                "storageClassMapping": [
                    {"infraStorageClassName": a, "guestStorageClassName": b, "group": g} for a, b, g in classes
                ],
                "volumeSnapshotClassMapping": [
                    {"infraVolumeSnapshotClassName": a, "guestVolumeSnapshotClassName": b, "group": g}
                    for a, b, g in snapshots
                ],
            },
        }
    )


def test_without_a_word_the_infra_default_becomes_the_guests_default() -> None:
    plan = storage_plan.plan(spec(), "ns", KNOWN)
    assert plan.classes == (GuestClass("kubevirt-csi-infra-default", "", default=True, expands=True),)
    assert [one.name for one in plan.snapshot_classes] == ["kubevirt-csi-snapshot"]
    assert plan.settings.default is not None and plan.settings.default.shared_block is True
    assert plan.settings.classes == {} and not plan.problems


def test_a_snapshot_class_of_another_driver_is_no_default_for_the_guest() -> None:
    other = {**SNAPSHOT_CLASS, "driver": "plain.example.com"}
    plan = storage_plan.plan(spec(), "ns", InfraKnown(KNOWN.classes, KNOWN.profiles, (other,)))
    assert plan.snapshot_classes == ()


def test_without_a_default_class_there_is_nothing_and_it_is_said() -> None:
    plan = storage_plan.plan(spec(), "ns", InfraKnown((infra_class("plain"),)))
    assert plan.classes == () and "no default StorageClass" in plan.problems[0]
    assert plan.settings.default is None


def test_mapped_classes_are_the_only_ones_and_what_is_missing_is_named() -> None:
    plan = storage_plan.plan(
        manual([("fast", "gold", "a"), ("nope", "silver", "b")], [("snap", "cut", "a")]), "ns", KNOWN
    )
    assert [(one.name, one.infra, one.default) for one in plan.classes] == [
        ("gold", "fast", True),
        ("silver", "nope", False),
    ]
    assert plan.settings.default is None and set(plan.settings.classes) == {"fast", "nope"}
    assert plan.settings.snapshot_classes["snap"].group == "a"
    assert plan.problems == ("the infra cluster has no StorageClass nope",)


def test_expansion_is_offered_only_where_the_infra_class_can() -> None:
    plan = storage_plan.plan(manual([("fast", "gold", ""), ("plain", "tin", "")]), "ns", KNOWN)
    assert [(one.name, one.expands) for one in plan.classes] == [("gold", True), ("tin", False)]


def test_what_becomes_of_data_is_the_infra_class_to_say_and_claims_inside_leave_nothing() -> None:
    """A guest class that kept volumes would leave what no tenant can delete by deleting its claim."""
    keeps = {**infra_class("fast", default=True), "reclaimPolicy": "Retain"}
    for driver in (spec(), manual([("fast", "gold", "")])):
        plan = storage_plan.plan(driver, "ns", InfraKnown((keeps,), KNOWN.profiles))
        (made,) = inside.classes(GuestStorage(plan, ""))
        assert made["reclaimPolicy"] == "Delete"
    # The infra volume follows its own class: nobody of ours can even see it.
    every = (*rights.ALL, *rights.CLAIMS)
    assert not [one for one in every if any("persistentvolumes" in name for name in one.resources)]


def test_where_nobody_may_look_what_is_asked_for_is_believed() -> None:
    plan = storage_plan.plan(spec(), "vms", None)
    assert plan.classes and plan.snapshot_classes and not plan.problems
    assert plan.settings.default is not None and plan.settings.default.shared_block is None


def test_none_means_none_and_other_platforms_have_none() -> None:
    assert not storage_plan.wanted(spec({"type": "None"}))
    assert not storage_plan.wanted({"platform": {"type": "None"}})
    assert storage_plan.wanted(spec()) and not storage_plan.asked_for(spec())
    assert storage_plan.asked_for(spec({"type": "Default"}))


def containers(deployment: dict[str, Any]) -> list[str]:
    return [one["name"] for one in deployment["spec"]["template"]["spec"]["containers"]]


def test_the_controller_has_a_sidecar_for_snapshots_only_where_there_are_any() -> None:
    p = params(images={**IMAGES, **STORAGE_IMAGES})
    with_snapshots = storage.deployment(p, storage_plan.plan(spec(), "ns", KNOWN), "r/hcp", "h", external=False)
    without = storage.deployment(
        p, storage_plan.plan(manual([("fast", "gold", "")]), "ns", KNOWN), "r/hcp", "h", external=False
    )
    assert containers(with_snapshots) == ["csi-driver", "csi-provisioner", "csi-resizer", "csi-snapshotter"]
    assert containers(without) == ["csi-driver", "csi-provisioner", "csi-resizer"]
    pod = with_snapshots["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "kubevirt-csi" and pod["securityContext"]["runAsNonRoot"] is True
    assert with_snapshots["spec"]["strategy"] == {"type": "Recreate"} and with_snapshots["spec"]["replicas"] == 1
    mounts = {m["mountPath"]: m.get("readOnly", False) for m in pod["containers"][0]["volumeMounts"]}
    assert mounts["/tmp"] is False, "certificates pass through files, and the root is read-only"
    labels = with_snapshots["spec"]["template"]["metadata"]["labels"]
    assert labels[names.LABEL_NEED_MANAGEMENT_API] == "true"


def test_with_another_infra_cluster_the_pod_has_no_account_of_the_management_cluster() -> None:
    p = params(images={**IMAGES, **STORAGE_IMAGES})
    made = storage.deployment(p, storage_plan.plan(spec(), "vms", None), "r/hcp", "h", external=True)
    pod = made["spec"]["template"]
    assert pod["spec"]["automountServiceAccountToken"] is False and "serviceAccountName" not in pod["spec"]
    assert names.LABEL_NEED_MANAGEMENT_API not in pod["metadata"]["labels"]
    assert any("--infra-kubeconfig" in word for word in pod["spec"]["containers"][0]["command"])


def guest(plan: storage_plan.Plan | None) -> GuestParams:
    made = None if plan is None else GuestStorage(plan, "r/hcp")
    images = {**IMAGES, **STORAGE_IMAGES}
    return GuestParams(params(), images=images, own_network=True, highly_available=False, storage=made)


def kinds(g: GuestParams) -> set[tuple[str, str]]:
    return {(m["kind"], m["metadata"]["name"]) for m in manifests.objects(g)}


def test_a_guest_without_storage_has_nothing_of_it() -> None:
    assert not {one for one in kinds(guest(None)) if "csi" in one[1] or "Class" in one[0]}


def test_the_node_side_has_no_credential_and_snapshots_come_where_they_are_mapped() -> None:
    found = manifests.objects(guest(storage_plan.plan(spec(), "ns", KNOWN)))
    node = next(m for m in found if m["kind"] == "DaemonSet" and m["metadata"]["name"] == "kubevirt-csi-node")
    pod = node["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["hostPID"] is True, "it runs the node's own programs"
    assert not [v for v in pod["volumes"] if "secret" in v or "projected" in v]
    assert ("Deployment", "csi-snapshot-controller") in kinds(guest(storage_plan.plan(spec(), "ns", KNOWN)))
    plain = storage_plan.plan(manual([("fast", "gold", "")]), "ns", KNOWN)
    assert not {one for one in kinds(guest(plain)) if "snapshot" in one[1].lower()}
    rules = inside.controller_rules(snapshots=True)
    assert not [r for r in rules if "secrets" in r["resources"] or "*" in r["resources"] or "*" in r["verbs"]]


def test_a_tenant_decides_which_class_is_the_default() -> None:
    (wanted,) = inside.classes(GuestStorage(storage_plan.plan(manual([("fast", "gold", "")]), "ns", KNOWN), ""))
    name = {inside.MADE_AS: "gold"}
    assert wanted["metadata"]["annotations"] == {**name, DEFAULT_CLASS: "true"}
    live = {"metadata": {"name": "gold", "annotations": {DEFAULT_CLASS: "false", "other": "x"}}}
    assert inside.as_chosen(wanted, live)["metadata"]["annotations"] == {**name, DEFAULT_CLASS: "false"}
    assert inside.as_chosen(wanted, None) == wanted


def test_a_class_that_means_something_else_now_is_made_anew_and_others_are_left_alone() -> None:
    def made(driver: dict[str, Any]) -> list[dict[str, Any]]:
        return inside.classes(GuestStorage(storage_plan.plan(driver, "ns", KNOWN), ""))

    before = made(spec())
    assert old_classes.outdated(before, made(spec())) == []
    name = "kubevirt-csi-infra-default"
    assert old_classes.outdated(before, made(manual([("fast", name, "")]))) == [name, "kubevirt-csi-snapshot"]
    assert old_classes.outdated(before[:1], made(manual([("plain", "tin", "")]))) == [name]
    theirs = {**before[0], "provisioner": "other.example.com"}
    assert old_classes.outdated([theirs], []) == []
    # Made of all that the original says, as programs copy objects.
    copies = [{**one, "metadata": {**one["metadata"], "name": "copy"}} for one in before]
    assert old_classes.outdated(copies, made(spec())) == []


def serving() -> dict[str, Any]:
    return {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {
            "conditions": [{"type": "Available", "status": "True"}],
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
        },
    }


def test_the_condition_says_what_is_missing_in_the_order_in_which_it_matters() -> None:
    plan = storage_plan.plan(spec(), "ns", KNOWN)
    assert verdict(None) is None
    cases: list[tuple[StorageState, Any, str]] = [
        (StorageState(missing=("csi-external-provisioner",)), False, c.MISSING_RELEASE_IMAGES),
        (StorageState(storage_plan.plan(spec(), "ns", InfraKnown())), False, c.NO_STORAGE_CLASS),
        (StorageState(plan, lacking=("patch persistentvolumeclaims",), nodes=1), False, c.INFRA_RIGHTS_MISSING),
        (StorageState(plan), "Unknown", c.NO_WORKER_NODES),
        (StorageState(plan, nodes=1, controller={"spec": {"replicas": 1}}), False, c.WAITING_FOR_AVAILABLE),
        (StorageState(plan, nodes=1, controller=serving(), waiting=("DaemonSet x",)), False, c.WAITING_FOR_AVAILABLE),
        (StorageState(plan, nodes=1, controller=serving()), True, c.AS_EXPECTED),
    ]
    for state, value, reason in cases:
        found = verdict(state)
        assert found is not None and found[:2] == (value, reason), found
    unseen = StorageState(plan, nodes=1, controller=serving(), waiting=None)
    assert verdict(unseen) == NOT_LOOKED_AT, "nobody has looked inside, so it does not work yet"
    told = ("False", c.WAITING_FOR_AVAILABLE, "Waiting for DaemonSet x inside the cluster")
    assert verdict(unseen, told) == told, "an operator that begins again has no news"
    good = verdict(cases[-1][0])
    assert good is not None and "kubevirt-csi-infra-default (default)" in good[2] and "kubevirt-csi-snapshot" in good[2]


def test_it_waits_for_its_own_parts_and_for_a_ready_node_to_run_them() -> None:
    def inside_says(*waiting: str, nodes: int = 1, reachable: bool = True) -> tuple[str, ...] | None:
        return not_available(GuestState(reachable=reachable, nodes=nodes, waiting=waiting))

    assert inside_says("DaemonSet kubevirt-csi-node", "DaemonSet kube-proxy") == ("DaemonSet kubevirt-csi-node",)
    # A node that has just come is not ready: its driver neither, whatever the list of parts says.
    assert inside_says("a ready node") == ("a ready node",)
    assert inside_says("a ready node", nodes=0) == (), "a cluster scaled to nothing has nothing to repair"
    assert inside_says() == ()
    assert inside_says(reachable=False) is None and not_available(None) is None
