"""Objects and CRDs for tests that need the API's own kinds on a real server."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import Any

from hcp.api import generate
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import NotFound, ServerFailure, Unreachable

TRIES = 4

Object = dict[str, Any]


async def install(client: Client, crds: list[Object] | None = None) -> None:
    """Apply CRDs, all at the same time, and wait until the server serves them."""
    wanted = crds if crds is not None else generate.crds()
    await asyncio.gather(*(_install(client, crd) for crd in wanted))
    for path in sorted({_root(crd) for crd in wanted}):
        names = {crd["spec"]["names"]["plural"] for crd in wanted if _root(crd) == path}
        while not await _listed(client, path, names):
            await asyncio.sleep(0.05)
    client.discovery.forget()


async def _install(client: Client, crd: Object) -> None:
    live = await _applied(client, crd)
    while not _established(live):
        await asyncio.sleep(0.05)
        live = await client.get(r.CRDS, crd["metadata"]["name"])


def _root(crd: Object) -> str:
    version = next(one["name"] for one in crd["spec"]["versions"] if one["served"])
    return f"/apis/{crd['spec']['group']}/{version}"


async def _listed(client: Client, path: str, names: set[str]) -> bool:
    """An established kind is served and announced a moment later."""
    with contextlib.suppress(NotFound):
        found = await client.raw("GET", path)
        return names <= {one["name"] for one in found.get("resources") or ()}
    return False


async def _applied(client: Client, crd: Object) -> Object:
    """A starved server lets a request run out of time; asking once more does no harm."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Unreachable, ServerFailure):
            return await client.apply(crd)
    return await client.apply(crd)


def _established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def rendered_cluster(namespace: str, name: str = "demo") -> Object:
    """A HostedCluster with every field the established command line always renders."""
    services = [
        ("APIServer", "LoadBalancer"),
        ("Ignition", "Route"),
        ("Konnectivity", "Route"),
        ("OAuthServer", "Route"),
    ]
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "autoscaling": {},
            "capabilities": {},
            "configuration": {},
            "controllerAvailabilityPolicy": "HighlyAvailable",
            "dns": {"baseDomain": ""},
            "etcd": {
                "managed": {"storage": {"persistentVolume": {"size": "8Gi"}, "type": "PersistentVolume"}},
                "managementType": "Managed",
            },
            "fips": False,
            "infraID": "demo-abcde",
            "networking": {
                "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
                "networkType": "OVNKubernetes",
                "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            },
            "olmCatalogPlacement": "management",
            "platform": {"kubevirt": {"baseDomainPassthrough": True}, "type": "KubeVirt"},
            "pullSecret": {"name": "demo-pull-secret"},
            "release": {"image": "quay.io/x/y:4.20.1"},
            "secretEncryption": {"aescbc": {"activeKey": {"name": "demo-etcd-encryption-key"}}, "type": "aescbc"},
            "services": [{"service": name, "servicePublishingStrategy": {"type": kind}} for name, kind in services],
            "sshKey": {},
        },
        "status": {"controlPlaneEndpoint": {"host": "", "port": 0}},
    }


def rendered_pool(namespace: str, name: str = "demo") -> Object:
    """A NodePool with every field the established command line always renders."""
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "arch": "amd64",
            "clusterName": "demo",
            "management": {"autoRepair": False, "upgradeType": "Replace"},
            "nodeDrainTimeout": "0s",
            "nodeVolumeDetachTimeout": "0s",
            "platform": {
                "kubevirt": {
                    "attachDefaultNetwork": True,
                    "compute": {"cores": 2, "memory": "4Gi"},
                    "networkInterfaceMultiqueue": "Enable",
                    "rootVolume": {"persistent": {"size": "32Gi"}, "type": "Persistent"},
                },
                "type": "KubeVirt",
            },
            "release": {"image": "quay.io/x/y:4.20.1"},
            "replicas": 2,
        },
        "status": {"replicas": 0},
    }


def changed(obj: Object, path: str, value: Any) -> Object:
    """A copy with the value at a dotted path; None removes it, a number is a place in a list."""
    made = copy.deepcopy(obj)
    *parents, last = path.split(".")
    node: Any = made
    for part in parents:
        node = node[int(part)] if part.isdigit() else node.setdefault(part, {})
    if value is None:
        node.pop(last, None)
    elif isinstance(node, list):
        node[int(last)] = value
    else:
        node[last] = value
    return made
