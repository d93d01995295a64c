"""What an API server of an earlier minor stored is stored anew by a later one: in etcd itself, page by page."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.guest import migration, rewrite
from hcp.guest.migration_record import Move, Record, load
from hcp.guest.migration_run import migrate
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import Resource

# As an API server of that minor stored it: the one that is built can behave, and store, as earlier ones did.
EARLIER = (
    "--emulated-version=1.33",
    "--feature-gates=DynamicResourceAllocation=true",
    "--runtime-config=resource.k8s.io/v1beta1=true",
)
MOVE = Move("1.36", "1.36@then", "1.35")
NS = "hosted"
THINGS = Resource("example.test", "v2", "things", "Thing")


@pytest.fixture
def server(tmp_path: Path, bin_dir: Path) -> Iterator[ApiServer]:
    made = ApiServer(tmp_path, bin_dir)
    try:
        made.start_etcd()
        made.start_api(*EARLIER)
        yield made
    finally:
        made.stop()


@pytest.fixture
def writes() -> list[str]:
    return []


@pytest.fixture
async def client(server: ApiServer, writes: list[str]) -> AsyncIterator[Client]:
    def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
        if verb not in ("get", "list", "watch"):
            writes.append(f"{verb} {target}")

    async with Client(load_config(server.kubeconfig), observer=observer) as made:
        yield made


def etcd(server: ApiServer, *words: str) -> bytes:
    endpoint = f"--endpoints=http://127.0.0.1:{server.etcd_port}"
    return subprocess.run([server.bin_dir / "etcdctl", endpoint, *words], check=True, capture_output=True).stdout


def stored(server: ApiServer, key: str) -> bytes:
    return etcd(server, "get", "--print-value-only", f"/registry/{key}")


def revision(server: ApiServer, key: str) -> str:
    """When it was written last."""
    text = etcd(server, "get", "-w", "fields", f"/registry/{key}").decode()
    return next(line for line in text.splitlines() if "ModRevision" in line)


def definition(written: str, *, served: tuple[str, ...] = ("v1", "v2")) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": name in served, "storage": name == written, "schema": schema} for name in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {
            "group": "example.test",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


async def things(client: Client, written: str, count: int = 1) -> None:
    """Objects of a kind that is now written in another version than it was when they were made."""
    await client.apply(definition("v1"))
    deep: Any = "end"
    for _ in range(150):
        deep = {"in": deep}

    async def made() -> bool:
        for number in range(count):
            meta = {"name": f"one-{number}", "namespace": "default"}
            body = {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": meta, "spec": {"deep": deep}}
            with contextlib.suppress(AlreadyExists):
                await client.raw("POST", "/apis/example.test/v1/namespaces/default/things", body=body)
        return True

    await eventually(made, "things are made")
    await client.apply(definition(written))


async def versions(client: Client) -> list[str]:
    found: list[str] = (await client.get(k.CRDS, "things.example.test"))["status"]["storedVersions"]
    return found


async def nothing(_: Record) -> None:
    """For a run whose record nobody reads."""


async def test_what_lies_in_an_earlier_version_is_stored_in_the_present_one(
    server: ApiServer, client: Client, writes: list[str]
) -> None:
    device = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    await client.create(device)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "kept"}}
    await client.create(role)
    await client.create(namespace(NS))
    await things(client, "v2")
    server.stop_api()
    server.start_api()
    client.discovery.forget()
    assert b"resource.k8s.io/v1beta" in stored(server, "deviceclasses/gpu")
    assert b"example.test/v1" in stored(server, "example.test/things/default/one-0")
    before = revision(server, "clusterroles/kept")
    assert await versions(client) == ["v1", "v2"]

    state = migration.State()
    assert await migration.step(client, client, NS, MOVE, state)
    told = state.told(MOVE)
    assert told is not None
    assert (told.complete, told.refused) == (True, "")
    assert b"resource.k8s.io/v1beta" not in stored(server, "deviceclasses/gpu")
    thing = stored(server, "example.test/things/default/one-0")
    assert b'"apiVersion":"example.test/v2"' in thing
    assert thing.count(b'"in"') == 150, "nothing of the object was lost"
    assert await versions(client) == ["v2"]
    assert revision(server, "clusterroles/kept") == before, "what lies as it should is not written"

    # Whoever comes next, also after a restart, does nothing more.
    record = await load(client, NS)
    assert record.complete
    assert "deviceclasses.resource.k8s.io" in record.done
    writes.clear()
    assert not await migration.step(client, client, NS, MOVE, state)
    again = migration.State()
    assert await migration.step(client, client, NS, MOVE, again), "what is known is told once"
    assert again.told(MOVE) == told
    assert writes == []


async def test_the_next_minor_asks_only_for_kinds_that_it_writes_in_another_version(
    server: ApiServer, client: Client, writes: list[str]
) -> None:
    server.stop_api()
    server.start_api()
    first = (await migrate(client, Record(), MOVE, nothing, seconds=600)).record
    assert first.complete
    writes.clear()
    done = {**first.done, "priorityclasses.scheduling.k8s.io": "another version"}
    known = Record(first.mark, first.minor, complete=True, done=done)
    second = await migrate(client, known, Move("1.37", "1.37@now", "1.36"), nothing, seconds=600)
    assert second.record.complete
    assert set(writes) == {"patch priorityclasses.scheduling.k8s.io"}
    # A minor that was tried and left before it was complete may have stored anything: all is looked at.
    writes.clear()
    await migrate(client, known, Move("1.36", "1.36@again", ""), nothing, seconds=600)
    assert len(set(writes)) > 3


async def test_a_run_that_is_interrupted_goes_on_with_the_next_page(
    server: ApiServer, client: Client, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "PAGE", 2)
    await client.create(namespace(NS))
    await things(client, "v2", count=5)
    # Everything but the pages of things is known to be done.
    whole = (await migrate(client, Record(), Move("1.36", "1.36@first"), nothing, seconds=600)).record
    await things_again(client)
    state = migration.State(Record("1.35@x", "1.35", complete=True, done=whole.done))
    monkeypatch.setattr(migration, "SECONDS", 0.0)
    writes.clear()
    for left in (True, True, False):
        assert await migration.step(client, client, NS, MOVE, state)
        assert state.more is left
        # The process ended here, and another goes on with what was written down.
        state = migration.State(await load(client, NS))
    assert writes.count("patch things.example.test") == 5, "no page twice"
    assert await versions(client) == ["v1"]


async def things_again(client: Client) -> None:
    """Back to the former version, so that all have to be stored anew."""
    assert await versions(client) == ["v2"]
    await client.apply(definition("v1"))

    async def both() -> bool:
        return await versions(client) == ["v2", "v1"]

    await eventually(both, "the definition says both")


async def test_objects_that_are_refused_are_told_and_hold_up_nothing_else(server: ApiServer, client: Client) -> None:
    await client.create(namespace(NS))
    await things(client, "v2")
    refusing = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-things"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["example.test"],
                        "apiVersions": ["*"],
                        "operations": ["UPDATE"],
                        "resources": ["things"],
                    }
                ]
            },
            "validations": [{"expression": "false", "message": "things are for ever"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-things"},
        "spec": {"policyName": "no-things", "validationActions": ["Deny"]},
    }
    for one in (refusing, binding):
        await client.create(one)

    async def refuses() -> bool:
        try:
            await client.patch(THINGS, "one-0", "default", {"metadata": {"labels": {"a": "b"}}})
        except Exception as error:
            return "for ever" in str(error)
        return False

    await eventually(refuses, "the policy counts")
    state = migration.State()
    assert await migration.step(client, client, NS, MOVE, state)
    told = state.told(MOVE)
    assert told is not None
    assert not told.complete
    assert "things.example.test: default/one-0" in told.refused
    assert "things are for ever" in told.refused
    assert await versions(client) == ["v1", "v2"], "the former version is still needed"
    assert not await migration.step(client, client, NS, MOVE, state), "it is not tried again at once"
    await client.delete(policy_bindings(), "no-things")

    async def allows() -> bool:
        await client.patch(THINGS, "one-0", "default", {"metadata": {"labels": {"c": "d"}}})
        return True

    await eventually(allows, "the policy counts no more")
    state.refused_at = 0.0
    assert await migration.step(client, client, NS, MOVE, state)
    assert await versions(client) == ["v2"]


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def policy_bindings() -> Resource:
    group = "admissionregistration.k8s.io"
    return Resource(group, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)
