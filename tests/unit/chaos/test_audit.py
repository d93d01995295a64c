"""The audit finds what must not be: a check that cannot fail would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chaos.audit import counted, strangers, unowned
from tests.chaos.machines import counted as of_machines
from tests.chaos.victims import Seen, of

NS = "clusters-kept"


def made(kind: str, name: str, owner: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "uid": f"uid-{name}"}
    if owner is not None:
        meta["ownerReferences"] = [
            {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    return {"kind": kind, "metadata": meta, **more}


def world() -> dict[str, list[dict[str, Any]]]:
    api = made("Deployment", "api", spec={"replicas": 2})
    old = made("ReplicaSet", "api-old", api, spec={"replicas": 0})
    new = made("ReplicaSet", "api-new", api, spec={"replicas": 2})
    etcd = made("StatefulSet", "etcd", spec={"replicas": 1, "volumeClaimTemplates": [{}]})
    pods = [made("Pod", f"api-{number}", new, status={"phase": "Running"}) for number in range(2)]
    lost = made("Pod", "api-lost", new, status={"phase": "Failed"})
    return {
        "Deployment": [api],
        "ReplicaSet": [old, new],
        "StatefulSet": [etcd],
        "Pod": [*pods, lost, made("Pod", "etcd-0", etcd, status={"phase": "Running"})],
        "PersistentVolumeClaim": [made("PersistentVolumeClaim", "data-etcd-0")],
    }


def test_what_is_as_it_should_be_is_let_be() -> None:
    assert counted(NS, world()) == []
    assert unowned(NS, world()) == []


def test_a_pod_too_many_or_too_few_is_found() -> None:
    more = world()
    more["Pod"].append(made("Pod", "api-twin", more["ReplicaSet"][1], status={"phase": "Running"}))
    assert counted(NS, more) == [f"{NS}: Deployment api has 3 pods, not 2"]
    less = world()
    less["Pod"].pop()
    assert counted(NS, less) == [f"{NS}: StatefulSet etcd has 0 pods, not 1"]
    ending = world()
    ending["Pod"][0]["metadata"]["deletionTimestamp"] = "now"
    assert counted(NS, ending) == [f"{NS}: Deployment api has 1 pods, not 2"]


def test_a_deployment_with_pods_of_two_templates_is_found() -> None:
    both = world()
    both["ReplicaSet"][0]["spec"]["replicas"] = 1
    assert counted(NS, both) == [f"{NS}: Deployment api has 2 ReplicaSets with pods"]


def test_a_claim_that_nobody_uses_is_found() -> None:
    more = world()
    more["PersistentVolumeClaim"].append(made("PersistentVolumeClaim", "data-etcd-1"))
    assert counted(NS, more) == [f"{NS}: StatefulSet etcd has 2 claims for 1 replicas"]


def test_an_object_whose_owner_is_gone_is_found() -> None:
    orphan = world()
    del orphan["ReplicaSet"][1]
    assert len(unowned(NS, orphan)) == 3


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("storm-3-pull-secret", True),
        ("clusters-storm-3", True),
        ("storm-33-pull-secret", True),
        ("storm-1-pull-secret", False),
        ("kept-pull-secret", False),
        ("hcp-storm", False),
    ],
)
def test_what_is_named_for_a_cluster_that_is_gone_is_found(name: str, left: bool) -> None:
    assert bool(strangers("Secret", [{"metadata": {"name": name}}], ["storm-1", "kept"])) is left


TABLE = [
    Seen(10, 1, ("python", "-m", "hcp.local.supervisor", "/var/lib/hcp/a")),
    Seen(11, 10, ("/cache/bin/etcd", "--name=local")),
    Seen(12, 10, ("/cache/bin/containerd-shim-runc-v2", "-id", "x")),
    Seen(13, 12, ("/pause",)),
    Seen(14, 12, ("/usr/bin/etcd", "--data-dir=/var/lib/data")),
    Seen(15, 12, ("python3", "-m", "hcp", "operator", "run", "--namespace=hypershift")),
    Seen(20, 1, ("python", "-m", "hcp.local.supervisor", "/var/lib/hcp/b")),
    Seen(21, 20, ("/cache/bin/etcd", "--name=local")),
]


@pytest.mark.parametrize(
    ("part", "pids"), [("etcd", [11]), ("hosted etcd", [14]), ("operator", [15]), ("router", []), ("kubelet", [])]
)
def test_victims_are_those_of_the_cluster_alone(part: str, pids: list[int]) -> None:
    """The machine's other clusters, and other etcds of this one, are not meant."""
    assert [seen.pid for seen in of(TABLE, 10, part)] == pids


def machines() -> dict[str, list[dict[str, Any]]]:
    machine = made("Machine", "pool-a", spec={"infrastructureRef": {"name": "pool-a"}})
    machine["status"] = {"nodeRef": {"name": "pool-a"}}
    launcher = made("Pod", "virt-launcher-pool-a-x", status={"phase": "Running"})
    launcher["metadata"]["labels"] = {"vm.kubevirt.io/name": "pool-a"}
    former = made("Pod", "virt-launcher-pool-a-y", status={"phase": "Failed"})
    former["metadata"]["labels"] = {"vm.kubevirt.io/name": "pool-a"}
    kinds = ("KubevirtMachine", "VirtualMachine", "VirtualMachineInstance")
    return {"Machine": [machine], "Pod": [launcher, former], **{kind: [made(kind, "pool-a")] for kind in kinds}}


def nodes(status: str = "True", *names: str) -> list[dict[str, Any]]:
    ready = {"conditions": [{"type": "Ready", "status": status}]}
    return [made("Node", name, status=ready) for name in names or ("pool-a",)]


def test_a_machine_that_is_one_vm_and_one_node_is_let_be() -> None:
    assert of_machines(1, machines(), nodes()) == []


def test_orphans_doubles_and_lost_ones_among_machines_are_found() -> None:
    orphan, double, lost = machines(), machines(), machines()
    orphan["VirtualMachine"].append(made("VirtualMachine", "pool-b"))
    assert of_machines(1, orphan, nodes()) == ["VirtualMachine pool-b belongs to no machine"]
    double["Pod"].append({**double["Pod"][0]})
    assert of_machines(1, double, nodes()) == ["machine pool-a runs 2 times"]
    lost["VirtualMachineInstance"].clear()
    assert of_machines(1, lost, nodes()) == ["machine pool-a has no VirtualMachineInstance"]
    assert of_machines(2, machines(), nodes()) == ["1 machines, not 2"]
    assert of_machines(1, machines(), nodes("False")) == ["machine's node pool-a is not ready"]
    assert of_machines(1, machines(), nodes("True", "pool-a", "b")) == ["node b is no machine"]


def test_a_virtual_machine_is_told_from_what_is_beside_it() -> None:
    table = [
        Seen(1, 0, ("supervisor",)),
        Seen(2, 1, ("containerd-shim-runc-v2",)),
        Seen(3, 2, ("virt-launcher",)),
        Seen(4, 3, ("/usr/bin/qemu-system-x86_64", "-name", "a")),
        Seen(5, 1, ("qemu-img",)),
    ]
    assert [row.pid for row in of(table, 1, "virtual machine")] == [4]
