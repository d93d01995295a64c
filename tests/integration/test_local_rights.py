"""Rights in an embedded cluster, asked of a real API server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually

from hcp.kube import Client, Resource, load_config
from hcp.local.addons import base
from hcp.local.addons.applying import apply_all

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
NODE: dict[str, Any] = {"user": "system:node:one", "groups": ["system:nodes", "system:authenticated"]}


async def may(client: Client, verb: str, resource: str) -> bool:
    asked = {"verb": verb, "resource": resource, "namespace": "default"}
    made = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}}
    answer = await client.create({**made, "spec": {**NODE, "resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])


async def test_the_kubelet_needs_no_watch_of_the_api_server_to_read_what_its_pods_mount(api_server: Path) -> None:
    async with Client(load_config(api_server)) as client:
        await apply_all(client, base.objects())
        for kind in ("persistentvolumeclaims", "secrets", "configmaps"):
            await eventually(partial(may, client, "get", kind), kind)
        assert not await may(client, "delete", "secrets")
