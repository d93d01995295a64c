"""The part of `status` that the API server knows: the node and what runs in pods."""

from __future__ import annotations

import asyncio
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client, load_config
from hcp.kube.errors import ApiError
from hcp.kube.resources import DAEMONSETS, DEPLOYMENTS, NODES
from hcp.local.addons.waiting import is_node_ready, pod_trouble
from hcp.local.host import forwarding, protections
from hcp.local.host.checks import has_dummy_links, kvm
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import all_nodes
from hcp.local.state.spec import Spec
from hcp.local.status.status import Line, Status
from hcp.runtime.workloads import rolled_out

# Where the cluster's own parts live; what people run in it is theirs to look at.
NAMESPACES = ("kube-system", "local-path-storage", "openshift-ingress", "metallb-system", "kubevirt", "cdi")


async def look_inside(layout: Layout, spec: Spec, status: Status) -> None:
    try:
        async with Client(load_config(layout.kubeconfig), user_agent="hcp-local") as client:
            await _look(client, layout, spec, status)
    except ApiError as error:
        status.wrong.append(f"The API server does not answer: {error}.")


async def _look(client: Client, layout: Layout, spec: Spec, status: Status) -> None:
    found, deployments, daemons, memory = await asyncio.gather(
        client.list(NODES),
        client.list(DEPLOYMENTS),
        client.list(DAEMONSETS),
        _memory(client, spec),
    )
    ready = {node["metadata"]["name"] for node in found if is_node_ready(node)}
    for node in all_nodes(spec):
        if node.name not in ready:
            where = "" if node.is_first else f" --node {node.name}"
            status.wrong.append(f"Node {node.name} is not Ready; see hcp local logs kubelet --name {spec.name}{where}.")
    for item in (*deployments, *daemons):
        meta = item["metadata"]
        if meta["namespace"] not in NAMESPACES:
            continue
        well = rolled_out(item)
        used = sum(size for (ns, pod), size in memory.items() if ns == meta["namespace"] and _owns(meta["name"], pod))
        status.lines.append(Line(meta["name"], _version(item), 0, used, "ready" if well else "not ready", well))
        if not well:
            why = await pod_trouble(client, meta["namespace"], item["spec"]["selector"].get("matchLabels", {}))
            status.wrong.append(
                f"{item['kind']} {meta['namespace']}/{meta['name']} is not ready: {why or 'no reason'}."
            )
    status.notes += [
        *forwarding.troubles(spec.addresses.link, layout.tools()),
        *protections.notes(machines=spec.profile == "kubevirt"),
    ]
    if spec.profile == "kubevirt":
        usable, why = kvm()
        status.notes.append(
            f"Virtual machines use KVM: {why}." if usable else f"Virtual machines run in software emulation: {why}."
        )
        if not has_dummy_links():
            status.notes.append(
                "The kernel has no dummy links: virt-handler keeps a bridged machine's address on a bridge instead."
            )


def _owns(workload: str, pod: str) -> bool:
    rest = pod.removeprefix(f"{workload}-")
    return rest != pod and rest.count("-") <= 1


def _version(workload: dict[str, Any]) -> str:
    """From its label; operators that carry none name it in their environment."""
    labels = workload["metadata"].get("labels") or {}
    if found := labels.get("app.kubernetes.io/version"):
        return str(found).removeprefix("v")
    for container in workload["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] in ("KUBEVIRT_VERSION", "OPERATOR_VERSION"):
                return str(variable.get("value") or "").removeprefix("v")
    return ""


async def _memory(client: Client, spec: Spec) -> dict[tuple[str, str], int]:
    """Working set of every pod by (namespace, name), as the kubelets measure it."""
    found: dict[tuple[str, str], int] = {}
    for node in all_nodes(spec):
        try:
            told = await client.raw("GET", f"/api/v1/nodes/{node.name}/proxy/stats/summary")
        except HcpError:
            continue
        for pod in told.get("pods", []):
            key = (pod["podRef"]["namespace"], pod["podRef"]["name"])
            found[key] = int(pod.get("memory", {}).get("workingSetBytes", 0))
    return found
