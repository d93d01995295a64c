"""The client against a real API server."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually

from hcp import pki
from hcp.errors import HcpError
from hcp.kube import Client, ClientPool, ClusterConfig, Resource, load_config
from hcp.kube import resources as r
from hcp.kube.errors import (
    AlreadyExists,
    ClientCertificateExpired,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unauthorized,
    Unreachable,
    UntrustedCertificate,
)


def config_map(ns: str, name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": data}


async def test_verbs_make_read_change_and_remove_an_object(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "one", a="1"))
    assert made["data"] == {"a": "1"}
    with pytest.raises(AlreadyExists) as caught:
        await client.create(config_map(namespace, "one"))
    assert caught.value.sentence == f'There is already a configmaps "one" in namespace {namespace}'
    made["data"] = {"a": "2"}
    stale = dict(made, metadata=dict(made["metadata"]))
    newest = await client.replace(made)
    assert newest["data"] == {"a": "2"}
    with pytest.raises(Conflict):
        await client.replace(stale)
    patched = await client.patch(r.CONFIGMAPS, "one", namespace, {"data": {"b": "3"}})
    assert patched["data"] == {"a": "2", "b": "3"}
    patched = await client.patch(r.CONFIGMAPS, "one", namespace, [{"op": "remove", "path": "/data/a"}], kind="json")
    assert patched["data"] == {"b": "3"}
    await client.delete(r.CONFIGMAPS, "one", namespace, uid=patched["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(r.CONFIGMAPS, "one", namespace)
    assert await client.get_or_none(r.CONFIGMAPS, "one", namespace) is None
    assert await client.delete(r.CONFIGMAPS, "one", namespace, missing_ok=True) is None


async def test_a_uid_guards_a_namesake_from_deletion(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "namesake"))
    with pytest.raises(Conflict):
        await client.delete(r.CONFIGMAPS, "namesake", namespace, uid="00000000-0000-0000-0000-000000000000")


async def test_apply_removes_what_it_no_longer_names_and_leaves_others_fields(client: Client, namespace: str) -> None:
    await client.apply(config_map(namespace, "ours", a="1", b="1"))
    await client.apply(config_map(namespace, "ours", theirs="x"), manager="someone-else")
    now = await client.apply(config_map(namespace, "ours", a="2"))
    assert now["data"] == {"a": "2", "theirs": "x"}
    with pytest.raises(Conflict):
        await client.apply(config_map(namespace, "ours", theirs="mine"), force=False)
    dry = await client.apply(config_map(namespace, "ours", theirs="mine"), dry_run=True)
    assert dry["data"]["theirs"] == "mine"
    assert (await client.get(r.CONFIGMAPS, "ours", namespace))["data"]["theirs"] == "x"


async def test_lists_come_in_pages_with_kind_and_selectors(client: Client, namespace: str) -> None:
    made = [config_map(namespace, f"m{i:04}") for i in range(520)]
    for i, obj in enumerate(made):
        obj["metadata"]["labels"] = {"half": str(i % 2)}
    await asyncio.gather(*(client.create(obj) for obj in made))
    listed = await client.list(r.CONFIGMAPS, namespace)
    assert {o["metadata"]["name"] for o in listed} == {o["metadata"]["name"] for o in made}
    assert {(o["kind"], o["apiVersion"]) for o in listed} == {("ConfigMap", "v1")}
    assert len(await client.list(r.CONFIGMAPS, namespace, labels="half=1")) == 260
    assert len(await client.list(r.CONFIGMAPS, namespace, fields="metadata.name=m0007")) == 1
    await client.delete_collection(r.CONFIGMAPS, namespace, labels="half=1")
    assert len(await client.list(r.CONFIGMAPS, namespace)) == 260


async def test_a_watch_sees_every_change_in_order(client: Client, namespace: str) -> None:
    _, version = await client.list_with_version(r.CONFIGMAPS, namespace)
    await client.apply(config_map(namespace, "w", a="1"))
    await client.apply(config_map(namespace, "w", a="x" * 300_000))
    await client.delete(r.CONFIGMAPS, "w", namespace)
    seen = []
    async with contextlib.aclosing(client.watch(r.CONFIGMAPS, namespace, resource_version=version)) as stream:
        async for kind, obj in stream:
            seen.append((kind, len(obj["data"]["a"])))
            if kind == "DELETED":
                break
    assert seen == [("ADDED", 1), ("MODIFIED", 300_000), ("DELETED", 300_000)]


async def test_a_watch_from_a_compacted_version_says_gone(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        first = await client.apply(config_map("default", "c", n="0"))
        for n in range(5):
            last = await client.apply(config_map("default", "c", n=str(n + 1)))
        own_server.compact(last["metadata"]["resourceVersion"])
        own_server.stop_api()
        own_server.start_api()
        with pytest.raises(Gone):
            version = str(int(first["metadata"]["resourceVersion"]) - 1)
            async for _ in client.watch(r.CONFIGMAPS, "default", resource_version=version):
                break


async def test_kinds_of_new_crds_are_found_by_discovery(client: Client) -> None:
    widgets = Resource("tests.example.com", "v1", "widgets", "Widget")
    assert not await client.has(widgets)
    assert await client.has(r.DEPLOYMENTS)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    await client.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.tests.example.com"},
            "spec": {
                "group": "tests.example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [version],
            },
        }
    )
    await _established(client, "widgets.tests.example.com")
    client.discovery.forget()
    obj = {"apiVersion": "tests.example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}

    async def found() -> bool:
        # What is established is announced and served a moment later.
        client.discovery.forget()
        assert await client.resource_for(obj) == widgets
        return bool((await client.apply(obj))["metadata"]["name"] == "w")

    await eventually(found, "the new kind")
    with pytest.raises(HcpError, match="does not know the kind Gadget"):
        await client.resource_for({"apiVersion": "tests.example.com/v1", "kind": "Gadget"})


async def _established(client: Client, name: str) -> None:
    async with contextlib.aclosing(client.watch(r.CRDS, fields=f"metadata.name={name}")) as stream:
        async for _, obj in stream:
            conditions = (obj.get("status") or {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return


async def test_forbidden_names_verb_resource_and_namespace(shared_server: ApiServer) -> None:
    nobody = _with_token(shared_server, "nobody-token")
    async with Client(nobody) as client:
        with pytest.raises(Forbidden) as caught:
            await client.list(r.DEPLOYMENTS, "default")
        assert caught.value.sentence == "Not allowed to list deployments.apps in namespace default"
        assert "verb list on deployments.apps in namespace default" in (caught.value.hint or "")
        assert not await client.allowed("create", r.NAMESPACES)


async def test_wrong_token_and_invalid_object_have_their_own_errors(shared_server: ApiServer, client: Client) -> None:
    async with Client(_with_token(shared_server, "wrong")) as wrong:
        with pytest.raises(Unauthorized, match="does not accept these credentials"):
            await wrong.list(r.PODS)
    with pytest.raises(Invalid):
        await client.create(config_map("default", "Not A Name"))


async def test_an_expired_client_certificate_is_named_as_such(shared_server: ApiServer) -> None:
    directory = shared_server.directory
    ca = pki.KeyPair((directory / "ca.crt").read_bytes(), (directory / "ca.key").read_bytes())
    old = pki.issue(ca, "admin", orgs=("system:masters",), usage="client", days=0)
    config = ClusterConfig.from_kubeconfig_dict(
        pki.kubeconfig(shared_server.url, ca.cert_pem, old.cert_pem, old.key_pem)
    )
    async with Client(config) as client:
        with pytest.raises(ClientCertificateExpired, match="expired on"):
            await client.list(r.PODS)


async def test_untrusted_and_unreachable_servers_are_told_apart(shared_server: ApiServer) -> None:
    stranger = ClusterConfig(shared_server.url, ca_pem=pki.new_ca("stranger").cert_pem)
    async with Client(stranger) as client:
        with pytest.raises(UntrustedCertificate, match="is not trusted"):
            await client.raw("GET", "/version")
    async with Client(ClusterConfig(f"https://127.0.0.1:{free_port()}")) as client:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await client.raw("GET", "/version")
    ca = (shared_server.directory / "ca.crt").read_bytes()
    async with Client(ClusterConfig(shared_server.url.replace("127.0.0.1", "127.0.0.2"), ca_pem=ca)) as client:
        with pytest.raises(Unreachable):
            await client.raw("GET", "/version")


async def test_a_rotated_token_file_is_read_again_after_401(shared_server: ApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("admin-token\n")
    config = yaml.safe_load(shared_server.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    async with Client(ClusterConfig.from_kubeconfig_dict(config)) as client:
        token.write_text("expired\n")
        with pytest.raises(Unauthorized):
            await client.list(r.NAMESPACES)
        token.write_text("admin-token\n")
        assert await client.list(r.NAMESPACES)
        token.write_text("other\n")
        assert await client.list(r.NAMESPACES)


async def test_an_exec_plugin_gives_the_token(shared_server: ApiServer, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    answer = '{"kind":"ExecCredential","status":{"token":"admin-token"}}'
    plugin.write_text(f"#!/bin/sh\ntest -n \"$KUBERNETES_EXEC_INFO\" && echo '{answer}'\n")
    plugin.chmod(0o755)
    config = yaml.safe_load(shared_server.kubeconfig.read_text())
    config["users"][0]["user"] = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
    async with Client(ClusterConfig.from_kubeconfig_dict(config)) as client:
        assert await client.list(r.NAMESPACES)
    config["users"][0]["user"]["exec"]["command"] = str(tmp_path / "missing")
    async with Client(ClusterConfig.from_kubeconfig_dict(config)) as client:
        with pytest.raises(HcpError, match="cannot be run"):
            await client.list(r.NAMESPACES)


async def test_a_busy_server_is_given_the_time_it_asks_for(own_server: ApiServer) -> None:
    own_server.stop_api(kill=True)
    own_server.start_api("--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1")
    statuses: list[int] = []
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "nobody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    }
    async with Client(load_config(own_server.kubeconfig)) as admin:
        await admin.apply(binding)
    # The limit does not hold for system:masters, so another user asks.
    config = _with_token(own_server, "nobody-token")
    async with Client(config, observer=lambda _v, _t, status, _s: statuses.append(status)) as client:
        await eventually(lambda: client.allowed("create", r.CONFIGMAPS, "default"), "the right counts")

        async def busy() -> bool:
            """Until two of them meet: whether they do is chance."""
            statuses.clear()
            objects = [config_map("default", "", a="x" * 100_000) for _ in range(24)]
            for obj in objects:
                obj["metadata"]["generateName"] = "busy-"
                del obj["metadata"]["name"]
            made = await asyncio.gather(*(client.create(obj) for obj in objects))
            assert len({obj["metadata"]["uid"] for obj in made}) == statuses.count(201) == 24
            return statuses.count(429) > 0

        await eventually(busy, "the server was busy, and all came in")


async def test_many_clusters_are_served_at_once(shared_server: ApiServer, own_server: ApiServer) -> None:
    async with ClientPool() as pool:
        one = pool.get("one", "admin", "a", lambda: load_config(shared_server.kubeconfig))
        two = pool.get("two", "admin", "b", lambda: load_config(own_server.kubeconfig))
        await asyncio.gather(
            one.apply(config_map("default", "who", n="1")), two.apply(config_map("default", "who", n="2"))
        )
        assert pool.get("one", "admin", "a", lambda: load_config(own_server.kubeconfig)) is one
        names = [(await c.get(r.CONFIGMAPS, "who", "default"))["data"]["n"] for c in (one, two)]
        assert names == ["1", "2"]
        changed = pool.get("one", "admin", "c", lambda: load_config(own_server.kubeconfig))
        assert (await changed.get(r.CONFIGMAPS, "who", "default"))["data"]["n"] == "2"
        pool.get("one", "infra", "d", lambda: load_config(own_server.kubeconfig))
        pool.drop("one")
        assert len(pool) == 1, "every client of an owner that is gone is closed"
        assert pool.get("two", "admin", "b", lambda: load_config(own_server.kubeconfig)) is two


async def test_raw_paths_answer_json_and_text(client: Client) -> None:
    assert (await client.raw("GET", "/version"))["major"] == "1"
    assert await client.raw_text("GET", "/readyz") == "ok"
    with pytest.raises(NotFound):
        await client.logs("nothing", "default")


def _with_token(server: ApiServer, token: str) -> ClusterConfig:
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    return ClusterConfig.from_kubeconfig_dict(config)
