"""What must hold when all is quiet again: exactly the right objects, none of anybody who is gone, none twice."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.support import management as s

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.resources import Resource
from hcp.runtime.conditions import condition_of

Object = Mapping[str, Any]
# Gives what is wrong.
Look = Callable[[], Awaitable[list[str]]]
NS = "clusters"
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False)
CLUSTER_WIDE = (k.CLUSTERROLES, k.CLUSTERROLEBINDINGS)


async def made_of(client: Client, name: str) -> set[tuple[str, str]]:
    """Its objects, by kind and by what their names would be in any cluster."""
    live = await client.get(k.HOSTEDCLUSTERS, name, NS)
    infra = str(live["spec"]["infraID"])
    found = await s.objects(client, f"{NS}-{name}")
    return {(kind, one.replace(infra, "INFRA").replace(name, "NAME")) for kind, one in found}


async def healthy(client: Client, name: str, image: str) -> list[str]:
    """What of a cluster is not as it was asked to be."""
    live = await client.get(k.HOSTEDCLUSTERS, name, NS)
    wanted = {"Available": "True", "Degraded": "False"}
    wrong = [
        f"{name}: {kind} is {found.get('status')}: {found.get('message')}"
        for kind, status in wanted.items()
        if (found := condition_of(live, kind) or {}).get("status") != status
    ]
    first = (at(live, "status.controlPlaneVersion.history") or [{}])[0]
    if (first.get("image"), first.get("state")) != (image, "Completed"):
        wrong.append(f"{name}: the control plane is at {first.get('version')} ({first.get('state')}), not at {image}")
    return wrong


async def leftovers(client: Client, alive: Iterable[str]) -> list[str]:
    """What is there of clusters that are not."""
    names = set(alive)
    hosted = {f"{NS}-{name}" for name in names}
    wrong = [
        f"Namespace {one['metadata']['name']} is left"
        for one in await client.list(k.NAMESPACES)
        if one["metadata"]["name"].startswith(f"{NS}-") and one["metadata"]["name"] not in hosted
    ]
    volumes = await client.list(VOLUMES)
    wrong += [
        f"PersistentVolume {one['metadata']['name']} of {at(one, 'spec.claimRef.namespace')} is left"
        for one in volumes
        if str(at(one, "spec.claimRef.namespace")).startswith(f"{NS}-")
        and at(one, "spec.claimRef.namespace") not in hosted
    ]
    known = {one["metadata"]["name"] for one in volumes}
    wrong += [
        f"VolumeAttachment {one['metadata']['name']} is left"
        for one in await client.list(ATTACHMENTS)
        if at(one, "spec.source.persistentVolumeName") not in known
    ]
    for resource in (k.SECRETS, k.CONFIGMAPS, k.HOSTEDCLUSTERS, k.NODEPOOLS):
        wrong += strangers(resource.kind, await client.list(resource, NS), names)
    for resource in CLUSTER_WIDE:
        wrong += strangers(resource.kind, await client.list(resource), names)
    return wrong


def strangers(kind: str, objects: Iterable[Object], alive: Iterable[str]) -> list[str]:
    """Objects that are named for a cluster of the run that is not there. Pure."""
    found = []
    for one in objects:
        name = one["metadata"]["name"]
        mentions = [part for part in _run_names(name) if part not in alive]
        if mentions:
            found.append(f"{kind} {name} is left")
    return found


def _run_names(name: str) -> list[str]:
    """`storm-12-pull-secret` → `storm-12`."""
    words = name.split("-")
    return [f"storm-{after}" for word, after in itertools.pairwise(words) if word == "storm" and after.isdigit()]


async def doubles(client: Client, ns: str) -> list[str]:
    """More or fewer pods and claims than there should be, and objects whose owner is gone."""
    lists = {
        resource.kind: await client.list(resource, ns)
        for resource in (k.DEPLOYMENTS, k.STATEFULSETS, REPLICASETS, k.PODS, CLAIMS, *s.KINDS)
    }
    return [*counted(ns, lists), *unowned(ns, lists)]


def counted(ns: str, lists: Mapping[str, Sequence[Object]]) -> list[str]:
    """Pure: every workload has exactly its pods, and a Deployment has them of one template."""
    wrong = []
    pods = [one for one in lists["Pod"] if not one["metadata"].get("deletionTimestamp")]
    for deployment in lists["Deployment"]:
        name, replicas = deployment["metadata"]["name"], at(deployment, "spec.replicas") or 0
        sets = [one for one in lists["ReplicaSet"] if _owner(one) == deployment["metadata"]["uid"]]
        live = [one for one in sets if at(one, "spec.replicas")]
        if len(live) != (1 if replicas else 0):
            wrong.append(f"{ns}: Deployment {name} has {len(live)} ReplicaSets with pods")
        of = {one["metadata"]["uid"] for one in sets}
        wrong += _pods(ns, f"Deployment {name}", replicas, [one for one in pods if _owner(one) in of])
    for stateful in lists["StatefulSet"]:
        name, replicas = stateful["metadata"]["name"], at(stateful, "spec.replicas") or 0
        wrong += _pods(
            ns, f"StatefulSet {name}", replicas, [one for one in pods if _owner(one) == stateful["metadata"]["uid"]]
        )
        claims = [one for one in lists["PersistentVolumeClaim"] if f"-{name}-" in one["metadata"]["name"]]
        if at(stateful, "spec.volumeClaimTemplates") and len(claims) != replicas:
            wrong.append(f"{ns}: StatefulSet {name} has {len(claims)} claims for {replicas} replicas")
    return wrong


def _pods(ns: str, what: str, replicas: int, pods: Sequence[Object]) -> list[str]:
    """A pod that failed with its node and was replaced stays as a record; it runs nothing."""
    running = [one for one in pods if at(one, "status.phase") not in ("Failed", "Succeeded")]
    return [f"{ns}: {what} has {len(running)} pods, not {replicas}"] if len(running) != replicas else []


def unowned(ns: str, lists: Mapping[str, Sequence[Object]]) -> list[str]:
    """Pure: nobody in the namespace belongs to somebody of it who is not there."""
    there = {one["metadata"]["uid"] for objects in lists.values() for one in objects}
    return [
        f"{ns}: {kind} {one['metadata']['name']} belongs to {owner['kind']} {owner['name']}, which is not there"
        for kind, objects in lists.items()
        for one in objects
        for owner in one["metadata"].get("ownerReferences") or ()
        if owner["kind"] in lists and owner["uid"] not in there
    ]


def _owner(one: Object) -> str:
    return next((str(owner["uid"]) for owner in one["metadata"].get("ownerReferences") or ()), "")
