"""`status`: gather what belongs to a hosted cluster and put it on one screen."""

from __future__ import annotations

import asyncio
from typing import Any

from hcp.api import conditions as c
from hcp.api import defaults, names
from hcp.api.paths import at
from hcp.cli.engine.command import Call
from hcp.cli.engine.table import show_data
from hcp.cli.shared import health, machine_messages
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster
from hcp.cli.shared.listing import if_served
from hcp.cli.shared.pools import pools_of
from hcp.cli.status.text import screen
from hcp.kube import Client
from hcp.kube.errors import Forbidden
from hcp.kube.resources import DATAVOLUMES, DEPLOYMENTS, MACHINES, NODES, PODS, VMIS

Object = dict[str, Any]
MACHINE_CONTROLLERS = ("cluster-api", "capi-provider")


async def run(call: Call) -> int:
    namespace, name = call.text("namespace"), call.arg("NAME")
    async with connect(call) as client:
        cluster = await find_cluster(client, call.prog, namespace, name)
        data = await gather(client, cluster)
    if call.text("output") == "table":
        print(screen(data))
    else:
        show_data(call.text("output"), data)
    return 0


async def gather(client: Client, cluster: Object) -> Object:
    """Everything the screen shows, as data; what may not be read is left out."""
    meta = cluster["metadata"]
    control_plane = names.control_plane_namespace(meta["namespace"], meta["name"])
    pools, pods, machines, vms, volumes, controllers, nodes = await asyncio.gather(
        pools_of(client, meta["namespace"], meta["name"]),
        _allowed(client.list(PODS, control_plane)),
        _allowed(client.list(MACHINES, control_plane)),
        _allowed(client.list(VMIS, control_plane)),
        _allowed(client.list(DATAVOLUMES, control_plane, f"{names.LABEL_CSI_ROLE}=volume")),
        _allowed(client.list(DEPLOYMENTS, names.OPERATOR_NAMESPACE)),
        _allowed(client.list(NODES)),
    )
    aside = not_worth_a_line(cluster, nodes)
    status = cluster.get("status") or {}
    entries = health.history(cluster)
    running = {vm["metadata"]["name"]: vm for vm in vms}
    return {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "platform": cluster["spec"]["platform"].get("type", ""),
        "infraID": cluster["spec"].get("infraID", ""),
        "controlPlaneNamespace": control_plane,
        "deleting": bool(meta.get("deletionTimestamp")),
        "asleep": health.sleep_stage(cluster) == c.ASLEEP,
        "sleep": health.sleep_line(cluster),
        "paused": str(cluster["spec"].get("pausedUntil") or ""),
        "release": (cluster["spec"].get("release") or {}).get("image", ""),
        "version": health.version(cluster),
        "rollout": {k: entries[0].get(k) or "" for k in ("version", "state")} if entries else {},
        "endpoints": _endpoints(status),
        "kubeconfig": (status.get("kubeconfig") or {}).get("name", ""),
        "available": health.is_true(cluster, "Available"),
        "problems": _problems(cluster, aside),
        "pods": [_pod(pod) for pod in pods if not _is_vm(pod)],
        "machineControllers": [_deployment(d) for d in controllers if d["metadata"]["name"] in MACHINE_CONTROLLERS],
        "storage": storage_line(cluster, len(volumes)),
        "nodePools": [_pool(pool, aside) for pool in pools],
        "machines": [_machine(machine, running) for machine in machines],
        "waitingFor": waiting_for(cluster, pools),
    }


async def _allowed(listing: Any) -> list[Object]:
    try:
        return await if_served(listing)
    except Forbidden:
        return []


def _endpoints(status: Object) -> Object:
    found = {}
    endpoint = status.get("controlPlaneEndpoint") or {}
    if endpoint.get("host"):
        found["API server"] = f"https://{endpoint['host']}:{endpoint.get('port') or defaults.API_PORT}"
    if status.get("ignitionEndpoint"):
        found["node bootstrap"] = f"https://{status['ignitionEndpoint']}"
    if status.get("oauthCallbackURLTemplate"):
        found["OAuth server"] = status["oauthCallbackURLTemplate"].removesuffix("/callback")
    return found


def storage_line(cluster: Object, volumes: int) -> str:
    """The guest's classes, in the condition's own words, and how many volumes it has beside its control plane.

    Of volumes on another infra cluster nothing is known here.
    """
    found = health.condition(cluster, c.STORAGE_AVAILABLE)
    if found is None or found.get("status") != "True":
        return ""
    many = f"; {volumes} volume{'' if volumes == 1 else 's'}" if volumes else ""
    return f"{found.get('message')}{many}"


def not_worth_a_line(cluster: Object, nodes: list[Object]) -> frozenset[str]:
    """Conditions nobody can do anything about: where there is one node only, no machine could move anyway."""
    elsewhere = at(cluster, "spec.platform.kubevirt.credentials")
    return frozenset({c.KUBEVIRT_LIVE_MIGRATABLE}) if len(nodes) == 1 and not elsewhere else frozenset()


def _problems(obj: Object, aside: frozenset[str]) -> list[Object]:
    fields = ("type", "status", "reason", "message")
    found = (item for item in health.problems(obj) if item.get("type") not in aside)
    return [{key: str(item.get(key) or "") for key in fields} for item in found]


def _is_vm(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("kubevirt.io") == "virt-launcher"


def _pod(pod: Object) -> Object:
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    waiting = [item["state"]["waiting"] for item in containers if (item.get("state") or {}).get("waiting")]
    why = health.explain(waiting[0]) if waiting else ""
    if not why:
        unscheduled = health.condition(pod, "PodScheduled")
        why = health.explain(unscheduled) if unscheduled and unscheduled.get("status") != "True" else ""
    return {
        "name": pod["metadata"]["name"],
        "phase": str(status.get("phase") or ""),
        "ready": health.is_true(pod, "Ready") or status.get("phase") == "Succeeded",
        "restarts": sum(int(item.get("restartCount") or 0) for item in containers),
        "why": why,
    }


def _deployment(deployment: Object) -> Object:
    status, spec = deployment.get("status") or {}, deployment["spec"]
    return {
        "name": deployment["metadata"]["name"],
        "namespace": deployment["metadata"]["namespace"],
        "ready": int(status.get("readyReplicas") or 0),
        "wanted": int(spec.get("replicas") or 0),
    }


def _pool(pool: Object, aside: frozenset[str]) -> Object:
    have, wanted = health.nodes(pool)
    return {
        "name": pool["metadata"]["name"],
        "nodes": have,
        "wanted": wanted,
        "desired": health.desired(pool),
        "version": str((pool.get("status") or {}).get("version") or ""),
        "ready": health.pool_ready(pool),
        "problems": _problems(pool, aside),
    }


def _machine(machine: Object, running: dict[str, Object]) -> Object:
    status = machine.get("status") or {}
    bad = [item for item in status.get("conditions") or [] if item.get("status") == "False"]
    vm = running.get(machine["metadata"]["name"]) or {}
    return {
        "name": machine["metadata"]["name"],
        "pool": (machine["metadata"].get("annotations") or {}).get(names.ANNOTATION_NODEPOOL, "").rpartition("/")[2],
        "phase": str(status.get("phase") or ""),
        "node": str((status.get("nodeRef") or {}).get("name") or ""),
        "vm": str((vm.get("status") or {}).get("phase") or ""),
        "why": health.explain(bad[0]) if bad and status.get("phase") != "Running" else "",
    }


def waiting_for(cluster: Object, pools: list[Object]) -> list[str]:
    """What has to happen next, in order; empty when all is well."""
    found = []
    if cluster["metadata"].get("deletionTimestamp"):
        holds = ", ".join(cluster["metadata"].get("finalizers") or []) or "nothing"
        return [f"deletion, held by {holds}"]
    stage = health.sleep_stage(cluster)
    if stage == c.ASLEEP:
        return []
    if stage == c.FALLING_ASLEEP:
        return [health.sleep_line(cluster)]
    if not health.is_true(cluster, "Available") or not health.at_its_version(cluster):
        found.append(health.control_plane_line(cluster))
    found += [machine_messages.pool_line(pool) for pool in pools if not health.pool_ready(pool)]
    return found
