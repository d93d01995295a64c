"""Informers, controllers, leases and writes against a real API server that goes away and comes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.kube import Client, ClusterConfig, load_config
from hcp.kube import resources as r
from hcp.kube.errors import Conflict, Invalid, Unauthorized
from hcp.runtime import Controller, EventRecorder, Informer, Lease, LeaseLost, Result, apply_if_changed

LONG = 300


def config_map(ns: str, name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": data}


@contextlib.asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[Informer]:
    await informer.start()
    async with asyncio.timeout(LONG):
        await informer.wait_synced()
    try:
        yield informer
    finally:
        await informer.stop()


async def until(informer: Informer, true: Callable[[], bool]) -> None:
    """Wait for a state of the cache by its own events."""
    changed = asyncio.Event()
    informer.add_listener(lambda _old, _new: changed.set())
    async with asyncio.timeout(LONG):
        while not true():
            changed.clear()
            await changed.wait()


async def test_an_informer_mirrors_and_tells_changes(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "before", a="1"))
    informer = Informer(client, r.CONFIGMAPS, namespace)
    informer.add_index("a", lambda o: [str(o["data"]["a"])])
    told: list[tuple[Any, Any]] = []
    informer.add_listener(lambda old, new: told.append((old and old["data"]["a"], new and new["data"]["a"])))
    async with running(informer):
        # The first list comes from the server's cache, which may be a moment behind.
        await until(informer, lambda: informer.get("before", namespace) is not None)
        await client.apply(config_map(namespace, "after", a="1"))
        await until(informer, lambda: len(informer.by_index("a", "1")) == 2)
        await client.apply(config_map(namespace, "after", a="2"))
        await until(informer, lambda: len(informer.by_index("a", "2")) == 1)
        await client.delete(r.CONFIGMAPS, "after", namespace)
        await until(informer, lambda: informer.get("after", namespace) is None)
    assert told == [(None, "1"), (None, "1"), ("1", "2"), ("2", None)]
    assert [o["kind"] for o in informer.list(namespace)] == ["ConfigMap"]


async def test_an_informer_survives_a_restart_of_the_api_server(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await client.create(config_map("default", "old", a="1"))
        informer = Informer(client, r.CONFIGMAPS, "default")
        deleted: list[str] = []
        informer.add_listener(lambda old, new: deleted.append(old["metadata"]["name"]) if old and not new else None)
        async with running(informer):
            for name, kill in (("one", False), ("two", True)):
                await asyncio.to_thread(own_server.stop_api, kill=kill)
                await asyncio.to_thread(own_server.start_api)
                await client.apply(config_map("default", name, a="1"))
                await until(informer, lambda name=name: informer.get(name, "default") is not None)  # type: ignore[misc]
        assert informer.get("old", "default") is not None
        assert deleted == []


async def test_an_informer_survives_a_restart_of_etcd(own_server: ApiServer) -> None:
    async with (
        Client(load_config(own_server.kubeconfig)) as client,
        running(Informer(client, r.CONFIGMAPS, "default")) as informer,
    ):
        await asyncio.to_thread(own_server.stop_etcd)
        await asyncio.to_thread(own_server.start_etcd)
        # An API server whose etcd has just come back may say so first.
        await eventually(lambda: client.apply(config_map("default", "after", a="1")), "a write")
        await until(informer, lambda: informer.get("after", "default") is not None)


async def test_an_informer_lists_again_after_compaction_and_reports_what_it_missed(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await client.create(config_map("default", "kept", a="1"))
        await client.create(config_map("default", "dropped", a="1"))
        informer = Informer(client, r.CONFIGMAPS, "default")
        async with running(informer):
            await until(informer, lambda: informer.get("dropped", "default") is not None)
        # The task is stopped, the cache stays: the world moves on and history is cut.
        await client.delete(r.CONFIGMAPS, "dropped", "default")
        last = await client.apply(config_map("default", "added", a="1"))
        for n in range(3):
            last = await client.apply(config_map("default", "added", a=str(n)))
        await asyncio.to_thread(own_server.compact, last["metadata"]["resourceVersion"])
        await asyncio.to_thread(own_server.stop_api)
        await asyncio.to_thread(own_server.start_api)
        changes: list[tuple[bool, bool]] = []
        informer.add_listener(lambda old, new: changes.append((old is not None, new is not None)))
        changes.clear()
        async with running(informer):
            await until(informer, lambda: informer.get("added", "default") is not None)
        assert informer.get("dropped", "default") is None
        assert informer.get("kept", "default") is not None
        assert changes == [(True, False), (False, True)]


async def test_an_informer_of_a_kind_that_is_not_installed_is_empty(client: Client) -> None:
    async with running(Informer(client, r.VIRTUALMACHINES)) as informer:
        assert informer.list() == []


async def test_a_controller_keeps_working_over_restarts_and_failures(own_server: ApiServer) -> None:
    """Each ConfigMap `in-N` gets a `out-N` with the same data, whatever happens to the API server."""
    async with Client(load_config(own_server.kubeconfig)) as client:
        informer = Informer(client, r.CONFIGMAPS, "default", labels="part=in")
        outputs = Informer(client, r.CONFIGMAPS, "default", labels="part=out")
        failed: Counter[str] = Counter()

        async def reconcile(key: str) -> Result | None:
            source = informer.get_key(key)
            if source is None:
                return None
            if not failed[key]:
                failed[key] += 1
                raise RuntimeError("the first try always fails")
            target = config_map("default", source["metadata"]["name"].replace("in", "out"), **source["data"])
            target["metadata"]["labels"] = {"part": "out"}
            await apply_if_changed(client, outputs, target)
            return None

        controller = Controller("copy", reconcile, workers=4, base_delay=0.01, max_delay=1.0)
        controller.watch(informer)
        async with running(informer), running(outputs):
            run = asyncio.create_task(controller.run())
            for round_ in range(2):
                for n in range(10):
                    obj = config_map("default", f"in-{n}", round=str(round_))
                    obj["metadata"]["labels"] = {"part": "in"}
                    await client.apply(obj)
                await asyncio.to_thread(own_server.stop_api, kill=True)
                await asyncio.to_thread(own_server.start_api)
                wanted = str(round_)
                await until(
                    outputs,
                    lambda wanted=wanted: [o["data"]["round"] for o in outputs.list()].count(wanted) == 10,  # type: ignore[misc]
                )
            controller.stop()
            await run


async def test_a_steady_set_of_objects_costs_no_writes(client: Client, namespace: str) -> None:
    writes: Counter[str] = Counter()
    async with Client(client.config, observer=lambda verb, target, _s, _t: writes.update([f"{verb} {target}"])) as own:
        informers = {
            res.kind: Informer(own, res, namespace)
            for res in (r.DEPLOYMENTS, r.STATEFULSETS, r.SERVICES, r.SECRETS, r.NETWORKPOLICIES, r.PDBS, r.ROLES)
        }
        async with contextlib.AsyncExitStack() as stack:
            for informer in informers.values():
                await stack.enter_async_context(running(informer))
            for obj in manifests(namespace):
                await apply_if_changed(own, informers.get(obj["kind"]), obj)
            made = sum(n for key, n in writes.items() if key.startswith("patch"))
            assert made == len(manifests(namespace))
            # A restarted operator has no memory of what it wrote, and another controller writes status meanwhile.
            status = {"status": {"replicas": 1, "observedGeneration": 1}}
            await own.patch(r.DEPLOYMENTS, "web", namespace, status, subresource="status", manager="other")
            writes.clear()
            async with Client(client.config, observer=own.transport.observer) as restarted:
                for obj in manifests(namespace):
                    await apply_if_changed(restarted, informers.get(obj["kind"]), obj)
                    await apply_if_changed(restarted, None, obj)
            assert {key for key in writes if not key.startswith(("get", "watch", "list"))} == set()


async def test_every_kind_of_drift_is_written_once(client: Client, namespace: str) -> None:
    async with running(Informer(client, r.DEPLOYMENTS, namespace)) as informer:
        deployment = manifests(namespace)[0]
        first = await apply_if_changed(client, informer, deployment)
        # someone changes a value we own
        await client.patch(r.DEPLOYMENTS, "web", namespace, {"spec": {"replicas": 7}}, manager="kubectl")
        await until(informer, lambda: (informer.get("web", namespace) or {})["spec"]["replicas"] == 7)
        fixed = await apply_if_changed(client, informer, deployment)
        assert fixed["spec"]["replicas"] == 1
        # we stop wanting a field
        del deployment["spec"]["template"]["spec"]["containers"][0]["env"][1]
        fixed = await apply_if_changed(client, informer, deployment)
        assert len(fixed["spec"]["template"]["spec"]["containers"][0]["env"]) == 1
        # an amount in other words is no change
        requests = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"], requests["memory"] = "0.1", "128Mi"
        assert (await apply_if_changed(client, informer, deployment))["metadata"]["generation"] == fixed["metadata"][
            "generation"
        ]
        assert first["metadata"]["uid"] == fixed["metadata"]["uid"]


async def test_an_object_from_the_cache_can_be_written_back(client: Client, namespace: str) -> None:
    await client.apply(config_map(namespace, "c", a="1", b="1"))
    async with running(Informer(client, r.CONFIGMAPS, namespace)) as informer:
        await until(informer, lambda: informer.get("c", namespace) is not None)
        cached = informer.get("c", namespace)
        assert cached is not None
        assert isinstance(cached["metadata"]["managedFields"][0]["fieldsV1"], str)
        await client.replace({**cached, "data": {"a": "2", "b": "1"}}, manager="other")
    after = await client.get(r.CONFIGMAPS, "c", namespace)
    assert {(m["manager"], m["operation"]) for m in after["metadata"]["managedFields"]} == {
        ("hcp", "Apply"),
        ("other", "Update"),
    }


async def test_values_that_the_server_rewrites_do_not_cause_endless_writes(client: Client, namespace: str) -> None:
    writes: Counter[str] = Counter()
    async with Client(client.config, observer=lambda verb, _r, _s, _t: writes.update([verb])) as own:
        odd = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "odd", "namespace": namespace},
            "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T01:00:00.000000+01:00"},
        }
        for _ in range(3):
            live = await apply_if_changed(own, None, odd)
        assert live["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
        assert writes["patch"] == 1
        await client.patch(r.LEASES, "odd", namespace, {"spec": {"holderIdentity": "b"}})
        assert (await apply_if_changed(own, None, odd))["spec"]["holderIdentity"] == "a"
        assert writes["patch"] == 2


async def test_a_field_the_kind_does_not_have_is_named(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid, match="unknownField: field not declared in schema"):
        await client.apply({**config_map(namespace, "odd"), "unknownField": 1})


async def test_status_is_applied_only_when_it_differs(client: Client, namespace: str) -> None:
    await client.apply(manifests(namespace)[0])
    status = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "status": {"replicas": 3, "conditions": [{"type": "Available", "status": "True", "reason": "r"}]},
    }
    writes: Counter[str] = Counter()
    async with Client(client.config, observer=lambda verb, _r, _s, _t: writes.update([verb])) as own:
        for _ in range(3):
            await apply_if_changed(own, None, status, subresource="status")
    assert writes["patch"] == 1


async def test_two_writers_conflict_and_the_controller_settles_it(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "shared", n="0"))
    conflicts = 0
    # The first six have all read before one of them writes.
    together, begun = asyncio.Barrier(6), 0

    async def count(key: str) -> Result | None:
        nonlocal conflicts, begun
        name = key.split("/")[1]
        obj = await client.get(r.CONFIGMAPS, name.split(".")[0], namespace)
        begun += 1
        if begun <= together.parties:
            await together.wait()
        obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
        try:
            await client.replace(obj)
        except Conflict:
            conflicts += 1
            raise
        left.discard(key)
        if not left:
            controller.stop()
        return None

    left = {f"{namespace}/shared.{n}" for n in range(12)}
    controller = Controller("count", count, workers=6, base_delay=0.01)
    for key in sorted(left):
        controller.enqueue(key)
    async with asyncio.timeout(LONG):
        await controller.run()
    assert (await client.get(r.CONFIGMAPS, "shared", namespace))["data"]["n"] == "12"
    assert conflicts > 0


async def test_the_lease_passes_on_at_once_when_the_leader_leaves(client: Client, namespace: str) -> None:
    order: list[str] = []
    first_leads, second_leads = asyncio.Event(), asyncio.Event()

    async def lead(name: str, started: asyncio.Event) -> None:
        order.append(name)
        started.set()
        await asyncio.Event().wait()

    one = Lease(client, "op", namespace, "one", duration=3600)
    two = Lease(client, "op", namespace, "two", duration=3600)
    first = asyncio.create_task(one.run(lambda: lead("one", first_leads)))
    async with asyncio.timeout(LONG):
        await first_leads.wait()
        second = asyncio.create_task(two.run(lambda: lead("two", second_leads)))
        await asyncio.sleep(0.2)
        assert order == ["one"]
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        # The lease lasts an hour: only a release can let the second one in.
        await second_leads.wait()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
    lease = await client.get(r.LEASES, "op", namespace)
    assert order == ["one", "two"]
    assert lease["spec"].get("holderIdentity", "") == ""
    assert lease["spec"]["leaseTransitions"] == 1


async def test_the_lease_of_a_dead_leader_runs_out(client: Client, namespace: str) -> None:
    dead = Lease(client, "op", namespace, "dead", duration=1)
    await dead.acquire()
    heir = Lease(client, "op", namespace, "heir", duration=1)
    async with asyncio.timeout(LONG):
        await heir.acquire()
    assert heir.is_leader


async def test_a_leader_that_cannot_renew_stops_leading(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        lease = Lease(client, "op", "default", "one", duration=3, renew_every=0.2)
        leading = asyncio.Event()

        async def lead() -> None:
            leading.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(lease.run(lead))
        async with asyncio.timeout(LONG):
            await leading.wait()
            await asyncio.to_thread(own_server.stop_api, kill=True)
            with pytest.raises(LeaseLost):
                await run


async def test_events_are_written_once_and_name_the_object(client: Client, namespace: str) -> None:
    obj = await client.create(config_map(namespace, "about"))
    recorder = EventRecorder(client, "hcp-operator")
    for _ in range(5):
        recorder.event(obj, "Warning", "Broken", "It does not work.")
    recorder.event(obj, "Normal", "Fixed", "It works.")
    await recorder.flush()
    events = await client.list(r.EVENTS, namespace)
    assert sorted((e["type"], e["reason"], e["involvedObject"]["name"]) for e in events) == [
        ("Normal", "Fixed", "about"),
        ("Warning", "Broken", "about"),
    ]


def manifests(ns: str) -> list[dict[str, Any]]:
    """What a control plane is made of, with everything the server likes to rewrite."""
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": "example.com/web@sha256:" + "0" * 64,
        "args": ["--a", "--b"],
        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
        "ports": [{"containerPort": 8443, "name": "https"}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
        "resources": {"requests": {"cpu": "100m", "memory": "131072Ki"}, "limits": {"memory": "1024Mi"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8443, "scheme": "HTTPS"}, "periodSeconds": 1},
        "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    volumes = [
        {"name": "data", "secret": {"secretName": "s", "defaultMode": 0o640}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "1024Mi"}},
        {"name": "empty", "emptyDir": {}},
        {
            "name": "all",
            "projected": {"sources": [{"configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "t"}}]},
        },
    ]
    pod = {
        "containers": [container],
        "volumes": volumes,
        "nodeSelector": {"x": "y"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "pull"}],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}},
                    }
                ]
            }
        },
    }
    template = {"metadata": {"labels": labels, "annotations": {"h": "1"}}, "spec": pod}
    meta = {"name": "web", "namespace": ns, "labels": labels, "annotations": {}}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-1111-1111-1111-111111111111"}
    selector = {"matchLabels": labels}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8192Mi"}}},
    }
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**meta, "ownerReferences": [{**owner, "controller": True}], "finalizers": ["example.com/f"]},
            "spec": {
                "replicas": 1,
                "selector": selector,
                "template": template,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": meta,
            "spec": {
                "serviceName": "web",
                "replicas": 0,
                "selector": selector,
                "template": template,
                "volumeClaimTemplates": [claim],
                "podManagementPolicy": "Parallel",
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {
                "selector": labels,
                "ports": [
                    {"port": 443, "targetPort": 8443, "name": "https"},
                    {"port": 53, "protocol": "UDP", "name": "d"},
                ],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": meta,
            "type": "Opaque",
            "data": {"a": "YQ=="},
            "stringData": {"b": "text"},
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v"}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": meta,
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {"matchLabels": labels}}], "ports": [{"port": 6443}]}],
            },
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"minAvailable": 1, "selector": selector},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "imagePullSecrets": [{"name": "p"}]},
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": meta,
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**pod, "restartPolicy": "Never"}}}},
            },
        },
    ]


async def test_a_watch_renews_an_identity_that_is_refused(shared_server: ApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("expired")
    config = yaml.safe_load(shared_server.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    async with Client(ClusterConfig.from_kubeconfig_dict(config)) as client:
        with pytest.raises(Unauthorized):
            await client.list(r.NAMESPACES)
        token.write_text("admin-token")
        stream = client.watch(r.NAMESPACES)
        async with contextlib.aclosing(stream):
            assert (await anext(stream))[0] == "ADDED"


async def test_an_object_outside_the_cache_is_fetched_not_written_again(client: Client, namespace: str) -> None:
    sent: Counter[str] = Counter()
    async with (
        Client(client.config, observer=lambda verb, _r, _s, _t: sent.update([verb])) as own,
        running(Informer(own, r.CONFIGMAPS, namespace, labels="some")) as informer,
    ):
        for _ in range(3):
            await apply_if_changed(own, informer, config_map(namespace, "unlabelled", a="1"))
        assert (sent["patch"], sent["get"]) == (1, 3)
        sent.clear()
        labelled = config_map(namespace, "labelled", a="1")
        labelled["metadata"]["labels"] = {"some": "label"}
        for _ in range(3):
            await apply_if_changed(own, informer, labelled)
        assert (sent["patch"], sent["get"]) == (1, 0)


async def test_a_lease_lost_and_won_again_leads_again(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        lease = Lease(client, "op", "default", "one", duration=2, renew_every=0.2)
        turns: asyncio.Queue[int] = asyncio.Queue()

        async def lead() -> None:
            turns.put_nowait(1)
            await asyncio.Event().wait()

        run = asyncio.create_task(lease.run(lead, again=True))
        async with asyncio.timeout(LONG):
            await turns.get()
            await asyncio.to_thread(own_server.stop_api, kill=True)
            while lease.is_leader:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(own_server.start_api)
            await turns.get()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
