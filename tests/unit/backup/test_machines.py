"""Which machines of a backup may be written, and which of them are taken over."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hcp.api import names
from hcp.backup import adopting, machines, objects
from hcp.backup.objects import KEYS, Kept
from hcp.backup.sealing import BrokenBackup
from hcp.kube.resources import MACHINES, MACHINESETS

Object = dict[str, Any]
HOSTED, ID, VMS, POOL = "clusters-demo", "demo-x", "vms", "clusters/demo"
CAPI, INFRA = "cluster.x-k8s.io/v1beta1", "infrastructure.cluster.x-k8s.io/v1alpha1"


def meta(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": HOSTED, "annotations": {names.ANNOTATION_NODEPOOL: POOL}, "uid": "u", **more}


def spec(kind: str, name: str) -> Object:
    return {
        "clusterName": ID,
        "bootstrap": {"dataSecretName": "user-data-demo-abc"},
        "infrastructureRef": {"apiVersion": INFRA, "kind": kind, "name": name, "namespace": HOSTED},
        "version": "1.36.3",
    }


def template(name: str = "demo-t") -> Object:
    vm = {"metadata": {"namespace": VMS}, "spec": {}}
    body = {"template": {"spec": {"virtualMachineTemplate": vm}}}
    return {"apiVersion": INFRA, "kind": "KubevirtMachineTemplate", "metadata": meta(name), "spec": body}


def machine_set(name: str = "demo-s") -> Object:
    body = {"clusterName": ID, "replicas": 2, "template": {"spec": spec("KubevirtMachineTemplate", "demo-t")}}
    return {"apiVersion": CAPI, "kind": "MachineSet", "metadata": meta(name), "spec": body, "status": {"replicas": 2}}


def machine(name: str, **more: Any) -> Object:
    owner = {"apiVersion": CAPI, "kind": "MachineSet", "name": "demo-s", "uid": "old", "controller": True}
    head = meta(name, labels={names.LABEL_CAPI_CLUSTER_NAME: ID}, ownerReferences=[owner], finalizers=["x"], **more)
    body = {**spec("KubevirtMachine", name), "providerID": f"kubevirt://{name}"}
    return {"apiVersion": CAPI, "kind": "Machine", "metadata": head, "spec": body, "status": {"phase": "Running"}}


def vm(name: str) -> Object:
    body = {
        "providerID": f"kubevirt://{name}",
        "infraClusterSecretRef": {"name": "others", "namespace": "others"},
        "virtualMachineTemplate": {"metadata": {"namespace": VMS}, "spec": {}},
    }
    return {"apiVersion": INFRA, "kind": "KubevirtMachine", "metadata": meta(name), "spec": body}


def cluster(**platform: Any) -> Object:
    given = {"infraNamespace": VMS, "infraKubeConfigSecret": {"name": "infra", "key": "kubeconfig"}}
    body = {"infraID": ID, "platform": {"type": "KubeVirt", "kubevirt": {"credentials": given}, **platform}}
    head = {"name": "demo", "namespace": "clusters"}
    return {"apiVersion": objects.HYPERSHIFT, "kind": "HostedCluster", "metadata": head, "spec": body}


def pool(name: str = "demo") -> Object:
    head = {"name": name, "namespace": "clusters"}
    return {
        "apiVersion": objects.HYPERSHIFT,
        "kind": "NodePool",
        "metadata": head,
        "spec": {"clusterName": "demo", "replicas": 2},
    }


def kept_machines() -> list[Object]:
    return [template(), machine_set(), vm("demo-1"), vm("demo-2"), machine("demo-1"), machine("demo-2")]


def accept(*more: Object, of: Object | None = None) -> Kept:
    def key(name: str) -> Object:
        head = {"name": name, "namespace": HOSTED}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": head, "type": "Opaque", "data": {}}

    found = [of or cluster(), pool(), *(key(name) for name in KEYS)]
    cleaned = [machines.clean(one, objects.clean(one)) for one in copy.deepcopy(list(more))]
    return objects.accept([*found, *cleaned], "clusters", "demo")


def test_machines_come_without_what_belongs_to_the_old_place() -> None:
    kept = accept(*kept_machines())
    assert len(kept.machines) == 6
    for one in kept.machines:
        assert "status" not in one and not {"uid", "finalizers"} & set(one["metadata"])
    first = next(one for one in kept.machines if one["kind"] == "Machine")
    assert first["metadata"]["ownerReferences"] == [{"kind": "MachineSet", "name": "demo-s"}]
    assert first["spec"]["providerID"] == "kubevirt://demo-1"
    own = {one["spec"]["infraClusterSecretRef"]["namespace"] for one in kept.machines if one["kind"] == vm("x")["kind"]}
    assert own == {HOSTED}, "by the credentials of this cluster, whatever the backup says"


def test_a_machine_that_was_about_to_go_is_the_first_to_go() -> None:
    kept = accept(machine("demo-1", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert kept.machines[0]["metadata"]["annotations"]["cluster.x-k8s.io/delete-machine"] == "yes"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.clusterName", "other"),
        ("spec.providerID", "kubevirt://other"),
        ("spec.infrastructureRef.namespace", "other"),
        ("spec.infrastructureRef.kind", "Secret"),
        ("spec.infrastructureRef", "Secret"),
        ("spec.bootstrap", 7),
        ("spec.bootstrap.dataSecretName", "root-ca"),
        ("spec.bootstrap.configRef", {"kind": "Secret", "name": "x"}),
        ("metadata.annotations", {names.ANNOTATION_NODEPOOL: "others/pool"}),
        ("metadata.labels", {}),
        ("metadata.namespace", "kube-system"),
    ],
)
def test_a_machine_may_only_be_of_this_cluster(path: str, value: Any) -> None:
    one = machine("demo-1")
    target = one
    *way, last = path.split(".")
    for part in way:
        target = target[part]
    target[last] = value
    with pytest.raises(BrokenBackup, match="refused"):
        accept(one)


def test_a_vm_elsewhere_is_refused() -> None:
    for made in (vm("demo-1"), template()):
        inside = made["spec"].get("template", {}).get("spec") or made["spec"]
        inside["virtualMachineTemplate"]["metadata"]["namespace"] = "others"
        with pytest.raises(BrokenBackup, match="another namespace"):
            accept(made)


def test_a_template_with_credentials_of_others_is_refused() -> None:
    made = template()
    made["spec"]["template"]["spec"]["infraClusterSecretRef"] = {"name": "others", "namespace": "others"}
    with pytest.raises(BrokenBackup, match="credentials of its own"):
        accept(made)


def test_machines_of_lost_infra_are_no_part_of_a_backup() -> None:
    with pytest.raises(BrokenBackup, match="no part of hosted cluster"):
        accept(machine("demo-1"), of=cluster(kubevirt={}))


def test_only_machines_whose_vms_are_there_are_taken_over() -> None:
    kept = accept(*kept_machines()).machines
    [found] = machines.choose(kept, [POOL], {"demo-2", "demo-9"})
    assert found.names == ["demo-2"]
    assert [one["metadata"]["name"] for one in (*found.templates, *found.sets)] == ["demo-t", "demo-s"]
    assert machines.choose(kept, [POOL], {"demo-9"}) == []
    assert machines.choose(kept, [], {"demo-1"}) == [], "the pool is there already"


def test_a_machine_without_its_set_or_its_vm_object_is_not_taken_over() -> None:
    without_set = [one for one in accept(*kept_machines()).machines if one["kind"] != "MachineSet"]
    assert machines.choose(without_set, [POOL], {"demo-1"}) == []
    without_vm = [one for one in accept(*kept_machines()).machines if one["kind"] != "KubevirtMachine"]
    assert machines.choose(without_vm, [POOL], {"demo-1"}) == []


def test_cluster_api_knows_what_carries_its_finalizer() -> None:
    [found] = machines.choose(accept(*kept_machines()).machines, [POOL], {"demo-1", "demo-2"})
    sets = {"demo-s": {"metadata": {"finalizers": ["cluster.x-k8s.io/machineset"]}}}
    one = {"demo-1": {"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}}}
    assert adopting.missed(found, {MACHINESETS: sets, MACHINES: one}) == ["Machine demo-2"]
    assert len(adopting.missed(found, {MACHINESETS: {}, MACHINES: {}})) == 3


@pytest.mark.parametrize(
    ("told", "moved"),
    [({"host": "api.example.com", "port": 6443}, False), ({"host": "192.0.2.1", "port": 6443}, True), ({}, True)],
)
def test_whether_nodes_still_find_the_api(told: Object, moved: bool) -> None:
    former = {**cluster(), "status": {"controlPlaneEndpoint": {"host": "api.example.com", "port": 6443}}}
    kept = accept(of=objects.with_endpoint(objects.clean(former), former))
    assert kept.endpoint == ("api.example.com", 6443)
    assert "status" not in kept.cluster
    assert adopting.moved(kept, {"status": {"controlPlaneEndpoint": told}}) is moved


@pytest.mark.parametrize(
    "told", [{"host": "a b", "port": 1}, {"host": "x", "port": 70000}, {"host": 7, "port": 1}, "x"]
)
def test_an_address_that_is_none_is_not_looked_at(told: Any) -> None:
    assert accept(of={**cluster(), "status": {"controlPlaneEndpoint": told}}).endpoint == ("", 0)
