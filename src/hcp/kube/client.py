"""The client every part of hcp uses: verbs on resources, raw dictionaries in and out.

Writes that state a wish go through server-side apply with one field manager, so two writers never overwrite each
other by accident and a field we stop setting disappears.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp

from hcp.errors import HcpError
from hcp.kube import bounded_json, errors, watching
from hcp.kube.config import ClusterConfig
from hcp.kube.discovery import Discovery
from hcp.kube.errors import Call
from hcp.kube.resources import PODS, Resource, resource_for
from hcp.kube.transport import Observer, Params, Transport

Object = dict[str, Any]
Objects = list[dict[str, Any]]
PatchKind = Literal["merge", "json", "strategic"]
MANAGER = "hcp"
PAGE = 500
PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10, sock_read=None)


class Client:
    """One cluster as one user. Cheap to make; connections open on first use."""

    def __init__(self, config: ClusterConfig, *, user_agent: str = "hcp", observer: Observer | None = None) -> None:
        self.config = config
        self.transport = Transport(config, user_agent=user_agent, observer=observer)
        self.discovery = Discovery(self.transport)

    @property
    def server(self) -> str:
        return self.config.server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    # reading

    async def get(self, res: Resource, name: str, ns: str | None = None) -> Object:
        """One object; NotFound if it is not there."""
        found = await self.transport.json(self._call("get", res, ns, name), "GET", res.path(ns, name))
        return _object(found)

    async def get_or_none(self, res: Resource, name: str, ns: str | None = None) -> Object | None:
        """One object, or None if it (or its kind) is not there."""
        try:
            return await self.get(res, name, ns)
        except errors.NotFound:
            return None

    async def list(
        self, res: Resource, ns: str | None = None, labels: str | None = None, fields: str | None = None
    ) -> Objects:
        """All objects, page by page, each with its apiVersion and kind."""
        items, _ = await self.list_with_version(res, ns, labels, fields)
        return items

    async def list_with_version(
        self,
        res: Resource,
        ns: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        *,
        from_cache: bool = False,
    ) -> tuple[Objects, str]:
        """All objects and the version to watch from; `from_cache` lets the server answer from memory, a bit old."""
        items: Objects = []
        version = ""
        async for page, listed in self.pages(res, ns, labels, fields, from_cache=from_cache):
            items += page
            version = listed
        return items, version

    async def pages(
        self,
        res: Resource,
        ns: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        *,
        from_cache: bool = False,
        size: int = PAGE,
    ) -> AsyncGenerator[tuple[Objects, str], None]:
        """All objects page by page, each page with the version to watch from; the server's memory knows no pages."""
        call = self._call("list", res, ns)
        base = watching.selectors(labels, fields)
        params = {**base, "resourceVersion": "0"} if from_cache else {**base, "limit": str(size)}
        while True:
            page = _object(await self.transport.json(call, "GET", res.path(ns), params=params))
            meta = page.get("metadata") or {}
            items = [{"apiVersion": res.api_version, "kind": res.kind, **item} for item in page.get("items") or ()]
            yield items, str(meta.get("resourceVersion") or "")
            if not meta.get("continue"):
                return
            params = {**base, "limit": str(size), "continue": meta["continue"]}

    async def watch(
        self,
        res: Resource,
        ns: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        resource_version: str | None = None,
    ) -> AsyncGenerator[tuple[str, Object], None]:
        """Changes as (ADDED|MODIFIED|DELETED|BOOKMARK, object) until the server ends the stream; Gone on 410."""
        call = self._call("watch", res, ns)
        params = watching.parameters(labels, fields, resource_version)
        async with self.transport.stream(call, res.path(ns), params=params, limits=watching.TIMEOUT) as response:
            custom = bounded_json.is_custom(res.path(ns))
            async for event in watching.events(call, response.content, custom=custom):
                yield event

    # writing

    async def create(self, obj: Object, *, manager: str = MANAGER, dry_run: bool = False) -> Object:
        """Make a new object; AlreadyExists if there is one. With `metadata.generateName` the server picks the name."""
        res, ns, name = await self._locate(obj)
        made = await self.transport.json(
            self._call("create", res, ns, name),
            "POST",
            res.path(ns),
            params=_write_params(manager, dry_run),
            body=_sendable(obj),
        )
        return _object(made)

    async def replace(self, obj: Object, subresource: str | None = None, *, manager: str = MANAGER) -> Object:
        """Write the whole object; Conflict if its resourceVersion is no longer the newest."""
        res, ns, name = await self._locate(obj)
        made = await self.transport.json(
            self._call("update", res, ns, name, subresource),
            "PUT",
            res.path(ns, name, subresource),
            params=_write_params(manager, False),
            body=_sendable(obj),
        )
        return _object(made)

    async def apply(
        self,
        obj: Object,
        *,
        manager: str = MANAGER,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: after it the object has the fields of `obj`, and those we no longer name are gone."""
        res, ns, name = await self._locate(obj)
        params = _write_params(manager, dry_run)
        params["force"] = "true" if force else "false"
        made = await self.transport.json(
            self._call("patch", res, ns, name, subresource),
            "PATCH",
            res.path(ns, name, subresource),
            params=params,
            body=_sendable(obj),
            content_type="application/apply-patch+yaml",
            repeatable=True,
        )
        return _object(made)

    async def patch(
        self,
        res: Resource,
        name: str,
        ns: str | None,
        body: Any,
        *,
        kind: PatchKind = "merge",
        subresource: str | None = None,
        manager: str = MANAGER,
    ) -> Object:
        """Change a few fields of an existing object."""
        made = await self.transport.json(
            self._call("patch", res, ns, name, subresource),
            "PATCH",
            res.path(ns, name, subresource),
            params=_write_params(manager, False),
            body=body,
            content_type=PATCH_TYPES[kind],
            repeatable=kind != "json",
        )
        return _object(made)

    async def delete(
        self,
        res: Resource,
        name: str,
        ns: str | None = None,
        *,
        propagation: str | None = None,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
        missing_ok: bool = False,
    ) -> Object | None:
        """Ask for deletion. `propagation`: Background, Foreground or Orphan; `uid` guards against a namesake, `version`
        against a change."""
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if propagation:
            body["propagationPolicy"] = propagation
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if uid or version:
            given = {"uid": uid, "resourceVersion": version}
            body["preconditions"] = {field: value for field, value in given.items() if value}
        try:
            gone = await self.transport.json(
                self._call("delete", res, ns, name), "DELETE", res.path(ns, name), body=body
            )
        except errors.NotFound:
            if missing_ok:
                return None
            raise
        return _object(gone)

    async def delete_collection(self, res: Resource, ns: str | None = None, labels: str | None = None) -> None:
        """Delete all objects of a namespace, or those with the labels."""
        call = self._call("deletecollection", res, ns)
        await self.transport.json(call, "DELETE", res.path(ns), params=watching.selectors(labels, None))

    # the rest

    async def raw(
        self, method: str, path: str, *, params: Params = None, body: Any = None, accept: str = "application/json"
    ) -> Any:
        """Any path, parsed as JSON; `accept` is for servers that answer with nothing and say so."""
        call = self._path_call(method, path)
        return await self.transport.json(call, method, path, params=params, body=body, accept=accept)

    async def raw_text(self, method: str, path: str, *, params: Params = None) -> str:
        """Any path, as text."""
        raw = await self.transport.send(self._path_call(method, path), method, path, params=params)
        return raw.decode("utf-8", "replace")

    async def logs(
        self,
        pod: str,
        ns: str,
        *,
        container: str | None = None,
        tail: int | None = None,
        previous: bool = False,
        limit_bytes: int | None = None,
    ) -> str:
        """The log of a container, straight through the API server."""
        params = {"previous": "true"} if previous else {}
        if container:
            params["container"] = container
        if tail is not None:
            params["tailLines"] = str(tail)
        if limit_bytes is not None:
            params["limitBytes"] = str(limit_bytes)
        return await self.raw_text("GET", PODS.path(ns, pod, "log"), params=params)

    async def follow_logs(self, pod: str, ns: str, *, container: str | None = None) -> AsyncIterator[str]:
        """Lines of a container's log as they are written, until the container ends."""
        params = {"follow": "true"} | ({"container": container} if container else {})
        call = self._call("get", PODS, ns, pod, "log")
        path = PODS.path(ns, pod, "log")
        async with self.transport.stream(call, path, params=params, limits=STREAM_TIMEOUT) as response:
            async for line in watching.lines(response.content):
                yield line.decode("utf-8", "replace")

    def websocket(
        self, path: str, protocol: str
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse[bool]]:
        """A connection that carries bytes both ways."""
        return self.transport.websocket(self._path_call("get", path), path, protocol)

    async def resource_for(self, obj: Mapping[str, Any]) -> Resource:
        """The resource of a manifest: from the known list, else by asking the server."""
        try:
            return resource_for(obj)
        except HcpError:
            if not obj.get("apiVersion") or not obj.get("kind"):
                raise
        return await self.discovery.resource(str(obj["apiVersion"]), str(obj["kind"]))

    async def has(self, res: Resource) -> bool:
        """Whether the cluster serves this kind (remembered)."""
        return await self.discovery.has(res)

    async def allowed(self, verb: str, res: Resource, ns: str | None = None, subresource: str = "") -> bool:
        """Whether we may do this, as the server sees it."""
        attributes = {"verb": verb, "group": res.group, "resource": res.plural, "version": res.version}
        if ns:
            attributes["namespace"] = ns
        if subresource:
            attributes["subresource"] = subresource
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self.create(review)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _locate(self, obj: Object) -> tuple[Resource, str | None, str | None]:
        res = await self.resource_for(obj)
        meta = obj.get("metadata") or {}
        ns = meta.get("namespace") if res.namespaced else None
        if res.namespaced and not ns:
            ns = self.config.namespace
        return res, ns, meta.get("name")

    def _call(
        self, verb: str, res: Resource, ns: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> Call:
        target = f"{res.full_name}/{subresource}" if subresource else res.full_name
        return Call(verb, target, ns if res.namespaced else None, name, self.server)

    def _path_call(self, method: str, path: str) -> Call:
        return Call(method.lower(), path, server=self.server)


def _sendable(obj: Object) -> Object:
    """An object without the server's own bookkeeping, which a cache may have shortened; the server keeps its copy."""
    meta = obj.get("metadata") or {}
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}


def _write_params(manager: str, dry_run: bool) -> dict[str, str]:
    params = {"fieldManager": manager}
    if dry_run:
        params["dryRun"] = "All"
    return params


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise errors.ServerFailure("The API server answered with something that is no object", cause=str(value)[:200])
    return value
