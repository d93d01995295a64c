"""MetalLB (`hcp local up --with metallb`): the manifest of its project, told about the wire that there is here.

A pool of ours holds the range that the embedded cluster gave addresses of before: what has one keeps it, and the router
gets the one that the apps domain names. Nothing new is taken out of it unasked: pools are made by whoever wants them.
"""

from __future__ import annotations

from collections.abc import Mapping

from hcp.api.manifests import Object
from hcp.kube import Resource
from hcp.local.addons.virtualization import documents
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL, WORKLOADS
from hcp.local.network.addresses import Addresses

NAMESPACE = "metallb-system"
IMAGES = ("image-metallb-controller", "image-metallb-speaker")
MANIFESTS = "metallb-manifests"
POOLS = Resource("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool")
POOL = "embedded"


def objects(manifest: str, images: Mapping[str, str], version: str) -> list[Object]:
    """`images`: by the name of the container's program, as `metallb-speaker`."""
    found = documents(manifest)
    for obj in found:
        obj["metadata"].pop("creationTimestamp", None)
        if obj["kind"] in WORKLOADS:
            obj["metadata"]["labels"] = {**obj["metadata"]["labels"], "app.kubernetes.io/version": version}
            _adapt(obj["spec"]["template"]["spec"], images)
        if obj["kind"] == "DaemonSet":
            # Only the first node is on the wire where the machine asks for addresses of the link.
            obj["spec"]["template"]["spec"]["nodeSelector"][CONTROL_PLANE_LABEL] = ""
    return found


def _adapt(pod: Object, images: Mapping[str, str]) -> None:
    for container in pod["containers"]:
        container["image"] = images[f"metallb-{container['name']}"]
        container["readinessProbe"].update({"initialDelaySeconds": 1, "periodSeconds": 1})


def pool(plan: Addresses) -> Object:
    return {
        "apiVersion": "metallb.io/v1beta1",
        "kind": POOLS.kind,
        "metadata": {"name": POOL, "namespace": NAMESPACE},
        "spec": {"addresses": [stack.load_balancers for stack in plan.stacks], "autoAssign": False},
    }
