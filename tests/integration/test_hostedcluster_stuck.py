"""A release that does not come up: what runs goes on, the cluster says why, and its owner goes back."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import rests, says, told
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS

from hcp.kube import Client
from hcp.kube import resources as k

Object = dict[str, Any]
NEW = "1.37.0"
DIGEST = hashlib.sha256(NEW.encode()).hexdigest()


async def history(client: Client) -> list[tuple[str, str]]:
    live = await client.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    entries = live["status"]["controlPlaneVersion"]["history"]
    return [(entry["version"], entry["state"]) for entry in entries]


async def image_of(client: Client, name: str) -> str:
    live = await client.get(k.DEPLOYMENTS, name, NS)
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def begins_in_vain(client: Client) -> None:
    """What the Deployment's controller and a kubelet say of the new pod."""
    live = await client.get(k.DEPLOYMENTS, "kube-apiserver", NS)
    template = live["spec"]["template"]
    meta = {"name": "kube-apiserver-new", "namespace": NS, "labels": template["metadata"]["labels"]}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]})
    state = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x": ErrImagePull: gone'}}
    seen = {"name": "kube-apiserver", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    body: Object = {"status": {"containerStatuses": [seen]}}
    await client.patch(k.PODS, meta["name"], NS, body, subresource="status")
    counts = {"replicas": 2, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1, "unavailableReplicas": 1}
    body = {"status": {**counts, "observedGeneration": live["metadata"]["generation"]}}
    await client.patch(k.DEPLOYMENTS, "kube-apiserver", NS, body, subresource="status")


async def test_it_says_why_and_goes_back_on_request(
    admin: Client, pods: HostedPods, image: str, registry: Registry, tmp_path: Path
) -> None:
    async def is_history(*entries: tuple[str, str]) -> bool:
        return await history(admin) == list(entries)

    await eventually(partial(is_history, ("1.36.3", "Completed")), "the first version")
    pods.unpullable = DIGEST
    wanted = await s.push_release(registry, tmp_path, NEW)
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"release": {"image": wanted}}})

    async def moved(digest: str = DIGEST) -> bool:
        return digest in await image_of(admin, "kube-apiserver")

    await eventually(moved, "the new API server is asked for")
    await begins_in_vain(admin)
    for kind in ("Degraded", "Progressing"):
        await eventually(partial(told, admin, NAME, kind, "True", "image x cannot be pulled: gone"), kind)
    await eventually(partial(says, admin, NAME, "Available", "True"), "what runs goes on")
    assert DIGEST not in await image_of(admin, "kube-scheduler"), "nothing may be newer than the API server"
    await eventually(partial(rests, admin, NAME), "what is stuck costs no writes")

    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"release": {"image": image}}})
    await admin.delete(k.PODS, "kube-apiserver-new", NS, grace=0)
    expected = ("1.36.3", "Completed"), (NEW, "Partial"), ("1.36.3", "Completed")
    await eventually(partial(is_history, *expected), "the version of before")
    await eventually(partial(told, admin, NAME, "Degraded", "False"), "whole")
    assert not await moved()
