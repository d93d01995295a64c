"""The last look before the status is written: what the cluster says about what we made."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions as c
from hcp.api.names import IGNITION_NODE_PORT, IGNITION_SERVER
from hcp.api.paths import annotations_of, at, block
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import DEPLOYMENTS, NODES, ROUTES, SECRETS, SERVICES, STATEFULSETS, STORAGECLASSES
from hcp.kubevirt.infra import credentials
from hcp.runtime.conditions import get_condition, is_false
from hcp.runtime.workloads import serving

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


async def run(scope: Scope) -> Learned | None:
    """Everything from caches; nothing is asked. Of a namespace that is somebody else's nothing is told."""
    if scope.claim.foreign:
        return None
    seen, ns = scope.seen, scope.namespace
    found = {name: scope.cache.get(DEPLOYMENTS, name, ns) for name in seen.wanted_deployments}
    facts = {
        "etcd": scope.cache.get(STATEFULSETS, "etcd", ns),
        "etcd_problem": _storage_problem(scope),
        "deployments": {name: live for name, live in found.items() if live is not None},
        "unspread": _spread_problem(scope),
        "not_migratable": _not_migratable(scope),
        "elsewhere": _external(scope) or len(scope.cache.list(NODES)) != 1,
        **_ignition(scope),
    }
    name = f"{scope.params.name}-admin-kubeconfig"
    if not seen.kubeconfig and scope.cache.get(SECRETS, name, scope.params.cluster_namespace):
        facts["kubeconfig"] = name
    return Learned(seen=facts)


def _not_migratable(scope: Scope) -> tuple[str, ...]:
    lacking = [pool for pool in scope.pools if is_false(at(pool, "status.conditions"), c.KUBEVIRT_LIVE_MIGRATABLE)]
    return tuple(sorted(pool["metadata"]["name"] for pool in lacking))


def _external(scope: Scope) -> bool:
    return bool(credentials(block(scope.cluster, "spec.platform")))


def _storage_problem(scope: Scope) -> str:
    """Why the volume of etcd may never come."""
    if scope.params.foreign_etcd:
        return ""
    classes = scope.cache.list(STORAGECLASSES)
    wanted = scope.params.etcd_storage_class
    if wanted:
        known = {s["metadata"]["name"] for s in classes}
        return "" if wanted in known else f"StorageClass {wanted} does not exist on the management cluster"
    if any(annotations_of(s).get(DEFAULT_CLASS) == "true" for s in classes):
        return ""
    return (
        "the management cluster has no default StorageClass for the volume of etcd; "
        "mark one as default, or create the cluster with --etcd-storage-class"
    )


def _spread_problem(scope: Scope) -> str:
    p = scope.params
    if not p.highly_available:
        return ""
    usable = [n for n in scope.cache.list(NODES) if _schedulable(n) and _selected(n, p.node_selector)]
    if len(usable) >= p.replicas:
        return ""
    return (
        f"The management cluster has {len(usable)} schedulable nodes for {p.replicas} replicas: "
        "some share a node, so the loss of one node can stop this control plane"
    )


def _schedulable(node: dict[str, Any]) -> bool:
    spec = node.get("spec") or {}
    blocked = any(
        t.get("effect") in ("NoSchedule", "NoExecute") and not str(t.get("key", "")).startswith("hypershift.")
        for t in spec.get("taints") or []
    )
    ready = get_condition(at(node, "status.conditions"), "Ready")
    return not spec.get("unschedulable") and not blocked and (ready is None or ready.get("status") == "True")


def _selected(node: dict[str, Any], selector: Any) -> bool:
    labels = node["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in selector.items())


def _ignition(scope: Scope) -> dict[str, Any]:
    """Where nodes get their first document: one server for the whole management cluster."""
    ns = scope.ctx.namespace
    route = scope.ctx.informers.get(ROUTES, ns=ns).get(IGNITION_SERVER, ns)
    publishing = scope.params.published("Ignition")
    host = publishing.hostname or at(route, "spec.host") or ""
    if publishing.type == "NodePort":
        service = scope.ctx.informers.get(SERVICES, ns=ns).get(IGNITION_NODE_PORT, ns)
        ports = at(service, "spec.ports") or [{}]
        address = f"[{publishing.address}]" if ":" in publishing.address else publishing.address
        host = f"{address}:{node_port}" if (node_port := ports[0].get("nodePort")) else ""
    server = scope.ctx.informers.get(DEPLOYMENTS, ns=ns).get(IGNITION_SERVER, ns)
    return {"ignition_endpoint": host, "ignition_ready": None if server is None else serving(server)}
