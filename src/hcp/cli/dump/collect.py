"""Writing the objects and logs of a cluster into files, laid out as `oc adm inspect` does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hcp.cli.engine.table import plain
from hcp.cli.engine.terminal import note
from hcp.cli.engine.yaml_output import dump
from hcp.errors import HcpError
from hcp.kube import Client, Resource

Object = dict[str, Any]
LOG_BYTES = 10_000_000


class Collector:
    """Everything one client can list, namespace by namespace. What fails is noted and left out."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.objects = 0
        self.logs = 0
        self.failed: list[str] = []
        self._kinds: list[Resource] | None = None

    def summary(self) -> None:
        note(f"{self.objects} objects and {self.logs} logs of {self.client.server} in {self.folder}")
        for failure in self.failed:
            note(f"left out {failure}")

    async def cluster_wide(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            await self._write(resource, None, self.folder / "cluster-scoped-resources")

    async def namespace(self, name: str, *, logs: bool) -> None:
        """All kinds the server has in one namespace; kinds without objects leave no file."""
        folder = self.folder / "namespaces" / name
        for resource in await self.kinds():
            found = await self._write(resource, name, folder)
            if logs and resource.plural == "pods":
                for pod in found:
                    await self._logs(pod, folder / "core" / "pods" / "logs")

    async def kinds(self) -> list[Resource]:
        """Every kind with a namespace that can be listed, asked from the server once."""
        if self._kinds is None:
            self._kinds = _kinds("", "v1", await self.client.raw("GET", "/api/v1"))
            for group in (await self.client.raw("GET", "/apis")).get("groups") or []:
                version = group["preferredVersion"]["version"]
                try:
                    listed = await self.client.raw("GET", f"/apis/{group['name']}/{version}")
                except HcpError as error:
                    self.failed.append(f"{group['name']}: {error}")
                    continue
                self._kinds += _kinds(group["name"], version, listed)
        return self._kinds

    async def _write(self, resource: Resource, namespace: str | None, folder: Path) -> list[Object]:
        try:
            found = await self.client.list(resource, namespace)
        except HcpError as error:
            self.failed.append(f"{resource} of {namespace or 'the cluster'}: {error}")
            return []
        if found:
            file = folder / (resource.group or "core") / f"{resource.plural}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            items = [without_secrets(plain(obj)) for obj in found]
            file.write_text(dump({"apiVersion": "v1", "kind": "List", "items": items}))
            self.objects += len(found)
        return found

    async def _logs(self, pod: Object, folder: Path) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        status = pod.get("status") or {}
        for state in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
            runs = [False, True] if state.get("restartCount") else [False]
            for previous in runs:
                file = folder / f"{name}-{state['name']}{'-previous' if previous else ''}.log"
                try:
                    text = await self.client.logs(
                        name, namespace, container=state["name"], previous=previous, limit_bytes=LOG_BYTES
                    )
                except HcpError as error:
                    self.failed.append(f"log of {namespace}/{name} {state['name']}: {error}")
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
                self.logs += 1


def _kinds(group: str, version: str, listed: Object) -> list[Resource]:
    return [
        Resource(group, version, item["name"], item["kind"], True)
        for item in listed.get("resources") or []
        if item.get("namespaced") and "list" in (item.get("verbs") or []) and "/" not in item["name"]
    ]


def without_secrets(obj: Object) -> Object:
    """A Secret with the sizes of its values instead of the values."""
    if obj.get("kind") != "Secret":
        return obj
    annotations = obj["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.endswith("last-applied-configuration")}
    data = {key: f"{len(value)} characters left out" for key, value in (obj.get("data") or {}).items()}
    return {**obj, "data": data, "metadata": {**obj["metadata"], "annotations": kept}}
