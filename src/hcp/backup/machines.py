"""Machines that outlive their management cluster: what a backup keeps of them, and which of them can be taken over.

Machines on an external infra cluster run on when the management cluster is lost. Kept is what Cluster API cannot work
out by itself: which machine is which VM, of which set, made of which template. It refers to its owner by name, for
UIDs are new after a restore. Not kept: the MachineDeployment, which the operator makes of the NodePool; status, which
controllers find out; and what machines booted with, whose token has long ended.

As all of a backup this is input from outside. Machines may only be of this cluster, its pools and its infra cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of, at, block, labels_of
from hcp.backup.sealing import BrokenBackup
from hcp.controlplane.capi import infra_secret
from hcp.kube import Resource
from hcp.kube.resources import KUBEVIRTMACHINES, KUBEVIRTMACHINETEMPLATES, MACHINES, MACHINESETS
from hcp.kubevirt.infra import credentials
from hcp.nodepool.secrets import USER_DATA_PREFIX

Object = dict[str, Any]
RESOURCES = (KUBEVIRTMACHINETEMPLATES, MACHINESETS, KUBEVIRTMACHINES, MACHINES)
# A machine that was about to go is the first one that its set lets go.
_GOING = "cluster.x-k8s.io/delete-machine"
_PROVIDER = "kubevirt://"


@dataclass(frozen=True)
class Place:
    """Where the machines of one hosted cluster may be."""

    hosted: str
    infra_id: str
    infra_namespace: str
    # `namespace/name` of its node pools.
    pools: Collection[str]


@dataclass(frozen=True)
class Found:
    """What can be taken over of one node pool."""

    pool: str
    templates: list[Object] = field(default_factory=list)
    sets: list[Object] = field(default_factory=list)
    vms: list[Object] = field(default_factory=list)
    machines: list[Object] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return sorted(_name(one) for one in self.vms)


def place(cluster: Mapping[str, Any], pools: Iterable[Mapping[str, Any]], hosted: str) -> Place | None:
    """None where machines are lost with their management cluster."""
    given = credentials(at(cluster, "spec.platform") or {})
    if not given:
        return None
    home = cluster["metadata"]["namespace"]
    keys = {f"{home}/{pool['metadata']['name']}" for pool in pools}
    return Place(hosted, str(at(cluster, "spec.infraID", "")), str(given.get("infraNamespace") or hosted), keys)


def is_one(obj: Mapping[str, Any]) -> bool:
    return _resource(obj) is not None


def clean(obj: Mapping[str, Any], cleaned: Object) -> Object:
    """A cleaned object with what machines need beside it: the name of their set, and whether they were to go."""
    if obj["kind"] != MACHINES.kind:
        return cleaned
    meta = dict(cleaned["metadata"])
    owners = [one for one in obj["metadata"].get("ownerReferences") or [] if one.get("kind") == MACHINESETS.kind]
    meta["ownerReferences"] = [{"kind": MACHINESETS.kind, "name": one["name"]} for one in owners[:1]]
    if obj["metadata"].get("deletionTimestamp"):
        meta["annotations"] = {**(meta.get("annotations") or {}), _GOING: "yes"}
    return {**cleaned, "metadata": meta}


def accepted(obj: Object, cleaned: Object, where: Place) -> Object:
    """The object as it may be written; `cleaned` is the same one after the checks that all objects get."""
    resource, problem = _resource(obj), ""
    if resource is None or not where.infra_id:
        problem = "is no machine"
    elif resource == MACHINES:
        problem = _machine_problem(obj, where)
    elif resource == MACHINESETS:
        template = at(obj, "spec.template.spec")
        problem = _references_problem(template, KUBEVIRTMACHINETEMPLATES, where) or _stranger(obj, where)
        if at(obj, "spec.clusterName") != where.infra_id:
            problem = "is of another cluster"
    elif resource == KUBEVIRTMACHINES:
        cleaned = _own_infra(cleaned, where)
        problem = _namespace_problem(at(obj, "spec.virtualMachineTemplate.metadata"), where)
    else:
        problem = _stranger(obj, where)
        made = at(obj, "spec.template.spec")
        problem = problem or _namespace_problem(at(made, "virtualMachineTemplate.metadata"), where)
        # Ours never name them: machines made of it use those of their cluster, and not what a backup says.
        if at(made, "infraClusterSecretRef") is not None:
            problem = "has credentials of its own"
    if problem:
        kind, name = str(obj.get("kind"))[:63], str(at(obj, "metadata.name"))[:253]
        raise BrokenBackup("the backup is refused", cause=f"{kind} {name!r} {problem}")
    return clean(obj, cleaned)


def choose(kept: Iterable[Object], pools: Collection[str], running: Collection[str]) -> list[Found]:
    """Of these pools, the machines whose VMs are there, with what they are made of; pools without any are left out."""
    by: dict[str, dict[str, Object]] = {resource.kind: {} for resource in RESOURCES}
    for one in kept:
        by[one["kind"]][_name(one)] = one
    found = []
    for pool in sorted(pools):
        mine = [one for one in by[MACHINES.kind].values() if pool_of(one) == pool]
        here = [one for one in mine if vm_of(one) in running and vm_of(one) in by[KUBEVIRTMACHINES.kind]]
        here = [one for one in here if set_of(one) in by[MACHINESETS.kind]]
        sets = [by[MACHINESETS.kind][name] for name in sorted({set_of(one) for one in here})]
        made_of = {str(at(one, "spec.template.spec.infrastructureRef.name")) for one in sets}
        if here:
            found.append(
                Found(
                    pool,
                    templates=[one for name, one in by[KUBEVIRTMACHINETEMPLATES.kind].items() if name in made_of],
                    sets=sets,
                    vms=[by[KUBEVIRTMACHINES.kind][vm_of(one)] for one in here],
                    machines=here,
                )
            )
    return found


def pool_of(obj: Mapping[str, Any]) -> str:
    """`namespace/name` of the pool that an object is of."""
    return annotations_of(obj).get(names.ANNOTATION_NODEPOOL, "")


def set_of(machine: Mapping[str, Any]) -> str:
    owners = machine["metadata"].get("ownerReferences") or []
    return str(owners[0]["name"]) if owners else ""


def vm_of(machine: Mapping[str, Any]) -> str:
    return str(at(machine, "spec.infrastructureRef.name", ""))


def user_data_of(obj: Mapping[str, Any]) -> str:
    """The Secret that a machine booted with, or that a set's next machine would."""
    inside = at(obj, "spec.template.spec") if obj["kind"] == MACHINESETS.kind else obj.get("spec")
    return str(at(inside, "bootstrap.dataSecretName", ""))


def _resource(obj: Mapping[str, Any]) -> Resource | None:
    told = (obj.get("apiVersion"), obj.get("kind"))
    return next((one for one in RESOURCES if (one.api_version, one.kind) == told), None)


def _name(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _machine_problem(obj: Object, where: Place) -> str:
    spec = obj.get("spec") or {}
    owners = obj["metadata"].get("ownerReferences")
    if not isinstance(owners, list) or len(owners) > 1 or not all(isinstance(at(one, "name"), str) for one in owners):
        return "has owners that are none"
    if spec.get("clusterName") != where.infra_id or labels_of(obj).get(names.LABEL_CAPI_CLUSTER_NAME) != where.infra_id:
        return "is of another cluster"
    if spec.get("providerID") not in (None, f"{_PROVIDER}{at(spec, 'infrastructureRef.name')}"):
        return "is another VM than it says"
    return _references_problem(spec, KUBEVIRTMACHINES, where) or _stranger(obj, where)


def _references_problem(spec: Any, kind: Resource, where: Place) -> str:
    """What it refers to may only be in its own namespace, of the kind that belongs there."""
    refers, bootstrap = block(spec, "infrastructureRef"), block(spec, "bootstrap")
    if refers.get("kind") != kind.kind or refers.get("namespace", where.hosted) != where.hosted:
        return "refers to something else"
    data = bootstrap.get("dataSecretName")
    if set(bootstrap) != {"dataSecretName"} or not str(data).startswith(USER_DATA_PREFIX):
        return "boots from something else"
    if names.subdomain_problem(str(data)) or names.subdomain_problem(str(refers.get("name"))):
        return "refers to what has no name"
    return "" if at(spec, "clusterName") == where.infra_id else "is of another cluster"


def _stranger(obj: Mapping[str, Any], where: Place) -> str:
    return "" if pool_of(obj) in where.pools else "is of no node pool in the backup"


def _namespace_problem(meta: Any, where: Place) -> str:
    there = at(meta, "namespace", where.infra_namespace)
    return "" if there == where.infra_namespace else "has its VM in another namespace"


def _own_infra(cleaned: Object, where: Place) -> Object:
    """By the credentials of this cluster, and no others."""
    return {**cleaned, "spec": {**(cleaned.get("spec") or {}), "infraClusterSecretRef": infra_secret(where.hosted)}}
