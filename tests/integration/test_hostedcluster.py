"""The HostedCluster reconciler on a real API server: from creation to Available, steady, and away again."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, mentions, reports, rests, says, told
from tests.support.passes import a_pass
from tests.support.registry import Registry, start

from hcp.hostedcluster.phases import PHASES
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.runtime.phases import ERRORS

Object = dict[str, Any]


def _failures() -> dict[str, float]:
    return {name: ERRORS.value(controller="hostedcluster", phase=name) for name in PHASES.names}


async def test_a_cluster_comes_up_stays_still_and_goes_away(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path, bin_dir: Path
) -> None:
    running = operator()
    port, ns, before = free_port(), "clusters-whole", s.open_sessions() + 2  # the operator's own two come later
    networking = {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
        "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        "apiServer": {"port": port},
    }
    failures = _failures()
    await s.create(admin, "whole", image, registry, networking=networking)
    hosted = s.HostedProcesses(tmp_path, bin_dir)

    async def made() -> bool:
        return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", ns) is not None

    try:
        await eventually(made, "the API server is deployed", hands(admin, ns))
        assert _failures() == failures, "a phase that fails costs a pass, and tells of an error that is none"
        await hosted.start(admin, ns, port)
        secret = await eventually(lambda: admin.get_or_none(k.SECRETS, "whole-admin-kubeconfig", "clusters"), "a login")
        config = untrusted_kubeconfig.load(base64.b64decode(secret["data"]["kubeconfig"]))
        async with Client(config) as guest:

            async def answers() -> bool:
                try:
                    return bool(await guest.list(k.NAMESPACES))
                except Exception:
                    return False

            await eventually(answers, "the hosted API answers")
            await eventually(lambda: says(admin, "whole", "Available", "True"), "Available", reports(admin, ns))
            await eventually(
                lambda: says(admin, "whole", "ConfigOperatorReconciliationSucceeded", "True"), "the guest is wired"
            )
            daemons = {d["metadata"]["name"] for d in await guest.list(k.DAEMONSETS, "kube-system")}
            assert daemons == {"konnectivity-agent", "kube-proxy", "kube-flannel"}

            async def advertised() -> bool:
                slices = await guest.get(k.ENDPOINTSLICES, "kubernetes", "default")
                return bool(slices["endpoints"][0]["addresses"] == ["172.20.0.1"])

            await eventually(advertised, "the API server's own address inside")
        twin = await admin.get(k.SECRETS, "clusters-whole-admin-kubeconfig", "clusters")
        assert twin["data"] == secret["data"]

        async def completed() -> Object | None:
            live = await admin.get(k.HOSTEDCLUSTERS, "whole", "clusters")
            done = live["status"]["controlPlaneVersion"]["history"][0]["state"] == "Completed"
            return live if done else None

        live = await eventually(completed, "the control plane is at its version")
        assert live["status"]["version"]["history"][0]["state"] == "Partial"
        assert live["status"]["controlPlaneEndpoint"] == {"host": "127.0.0.1", "port": port}
        # Steady: the cluster is gone through again, and nothing is written.
        await eventually(lambda: rests(admin, "whole"), "a pass that writes nothing")
        found = await s.objects(admin, ns)
        s.verify_certificates(found)
        assert len(running.writes) <= 1.5 * len(found), running.writes
        projection = found[("HostedControlPlane", "whole")]
        assert projection["status"]["initialized"] is projection["status"]["ready"] is True
        # Nothing rolled twice.
        workloads = [o for (kind, _), o in found.items() if kind in ("Deployment", "StatefulSet")]
        assert {o["metadata"]["generation"] for o in workloads} == {1}

        # A new process, with the same cluster: still nothing.
        await running.stop()
        async with a_pass("hostedcluster", "guest", "vm-isolation", "ignition-certificates"):
            again = operator()
        assert again.writes == []
        assert await rests(admin, "whole") and again.writes == [], "nor later"
        after = await s.objects(admin, ns)
        assert {key: o["metadata"]["resourceVersion"] for key, o in after.items()} == {
            key: o["metadata"]["resourceVersion"] for key, o in found.items()
        }

        # What somebody takes away comes back.
        await admin.delete(k.NETWORKPOLICIES, "default-deny", ns)

        async def back() -> bool:
            return await admin.get_or_none(k.NETWORKPOLICIES, "default-deny", ns) is not None

        await eventually(back, "the policy is back")
    finally:
        hosted.stop()
    await admin.delete(k.HOSTEDCLUSTERS, "whole", "clusters")
    await eventually(lambda: gone(admin, "whole"), "all is gone")

    async def closed() -> bool:
        return s.open_sessions() <= before

    await eventually(closed, "nothing stays open to a guest that is gone")

    async def cleared() -> bool:
        left = {o["metadata"]["name"] for o in await admin.list(k.SECRETS, "clusters")}
        return not {n for n in left if "whole" in n and n != "whole-pull-secret"}

    await eventually(cleared, "nothing of it is left beside it")


async def test_what_is_wrong_is_told_and_recovers_by_itself(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path
) -> None:
    operator()
    lacking = await s.push_release(registry, tmp_path, "1.0.0", ("etcd", "kube-apiserver"))
    cases: dict[str, tuple[dict[str, Any], str, str, str]] = {
        "overlap": (
            {"networking": {"clusterNetwork": [{"cidr": "10.0.0.0/8"}], "serviceNetwork": [{"cidr": "10.1.0.0/16"}]}},
            "ValidConfiguration",
            "InvalidConfiguration",
            "overlaps",
        ),
        "unknown": (
            {"release": {"image": f"{registry.host}/hcp/release:none"}},
            "ValidReleaseImage",
            "InvalidImage",
            "does not exist",
        ),
        "unreachable": (
            {"release": {"image": "127.0.0.1:1/hcp/release:1"}},
            "ValidReleaseImage",
            "InvalidImage",
            "cannot be reached",
        ),
        "lacking": ({"release": {"image": lacking}}, "ValidReleaseInfo", "MissingReleaseImages", "kube-scheduler"),
        "untrusted": ({"additionalTrustBundle": {"name": ""}}, "ValidReleaseImage", "InvalidImage", "not trusted"),
        "secretless": ({"pullSecret": {"name": "missing"}}, "ValidReleaseImage", "SecretNotFound", "missing"),
    }
    for name, (spec, *_) in cases.items():
        await s.create(admin, name, image, registry, **spec)
    for name, (_, kind, reason, text) in cases.items():
        found = await eventually(partial(told, admin, name, kind, "False", text), name)
        assert found["reason"] == reason
        await eventually(partial(says, admin, name, "Available", "False"), name)
    # The missing pull secret comes: the cluster goes on without being touched.
    source = await admin.get(k.SECRETS, "secretless-pull-secret", "clusters")
    await admin.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "missing", "namespace": "clusters"},
            "data": source["data"],
        }
    )
    await eventually(lambda: says(admin, "secretless", "ValidReleaseImage", "True"), "recovers")
    # A corrected release, too.
    await admin.patch(k.HOSTEDCLUSTERS, "unknown", "clusters", {"spec": {"release": {"image": image}}})
    await eventually(lambda: says(admin, "unknown", "ValidReleaseImage", "True"), "recovers")
    # Without storage and without a load balancer it says so, and what to do.
    await eventually(lambda: mentions(admin, "unknown", "EtcdAvailable", "default StorageClass"), "storage is missed")
    words = "install one, or publish by NodePort or Route"
    waiting = await eventually(lambda: told(admin, "unknown", "InfrastructureReady", "False", words), "an address too")
    assert waiting["reason"] == "WaitingOnInfrastructureReady"
    metadata = {"name": "disk", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
    await admin.create({**storage, "provisioner": "example.com/disk"})

    async def storage_is_there() -> bool:
        return not await mentions(admin, "unknown", "EtcdAvailable", "StorageClass")

    await eventually(storage_is_there, "storage is there")
    await admin.delete(k.STORAGECLASSES, "disk")
    for name in cases:
        await admin.delete(k.HOSTEDCLUSTERS, name, "clusters")
    for name in cases:
        await eventually(lambda n=name: gone(admin, n), "all is gone")  # type: ignore[misc]


async def test_an_upgrade_begins_with_the_api_server(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path
) -> None:
    operator()
    newer, ns = await s.push_release(registry, tmp_path, "1.37.0"), "clusters-newer"
    await s.create(admin, "newer", image, registry)

    async def images() -> dict[str, str]:
        found = await admin.list(k.DEPLOYMENTS, ns)
        return {
            d["metadata"]["name"]: d["spec"]["template"]["spec"]["containers"][0]["image"].rpartition("@")[2]
            for d in found
        }

    async def made() -> bool:
        return len(await images()) == 3

    await eventually(made, "it is made", hands(admin, ns))
    await s.report_ready(admin, ns)
    old = (await images())["kube-apiserver"]
    await admin.patch(k.HOSTEDCLUSTERS, "newer", "clusters", {"spec": {"release": {"image": newer}}})

    async def api_server_moved() -> bool:
        return (await images())["kube-apiserver"] != old

    await eventually(api_server_moved, "the API server is moved")
    async with a_pass("hostedcluster"):
        await admin.patch(k.HOSTEDCLUSTERS, "newer", "clusters", {"metadata": {"annotations": {"look": "again"}}})
    assert {name: found == old for name, found in (await images()).items()} == {
        "kube-apiserver": False,
        "kube-controller-manager": True,
        "kube-scheduler": True,
    }

    async def all_moved() -> bool:
        await s.report_ready(admin, ns, only="kube-apiserver")
        return old not in (await images()).values()

    await eventually(all_moved, "the others follow")

    async def in_history() -> bool:
        history = (await admin.get(k.HOSTEDCLUSTERS, "newer", "clusters"))["status"]["version"]["history"]
        return [h["version"] for h in history] == ["1.37.0", "1.36.3"]

    await eventually(in_history, "both are in the history")
    await admin.delete(k.HOSTEDCLUSTERS, "newer", "clusters")
    await eventually(lambda: gone(admin, "newer"), "all is gone")


async def test_a_pause_rests_and_the_same_infra_id_is_refused(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    await s.create(admin, "first", image, registry, infraID="shared-id", pausedUntil="true")
    await eventually(lambda: says(admin, "first", "ReconciliationActive", "False"), "paused")
    assert await admin.get_or_none(k.NAMESPACES, "clusters-first") is None
    await asyncio.sleep(1.1)
    await s.create(admin, "second", image, registry, infraID="shared-id")
    await eventually(lambda: told(admin, "second", "ValidConfiguration", "False", "clusters/first"), "refused")
    await admin.patch(k.HOSTEDCLUSTERS, "first", "clusters", {"spec": {"pausedUntil": None}})

    async def begun() -> bool:
        return await admin.get_or_none(k.STATEFULSETS, "etcd", "clusters-first") is not None

    await eventually(begun, "goes on")
    # The first one goes: its infraID is free, and the second goes on without being touched.
    await admin.delete(k.HOSTEDCLUSTERS, "first", "clusters")
    await eventually(lambda: gone(admin, "first"), "all is gone")
    await eventually(lambda: says(admin, "second", "ValidConfiguration", "True"), "allowed")
    await admin.delete(k.HOSTEDCLUSTERS, "second", "clusters")
    await eventually(lambda: gone(admin, "second"), "all is gone")


async def test_a_wrong_pull_secret_is_told_and_a_right_one_is_taken(
    admin: Client, operator: Callable[[], Running], tmp_path: Path
) -> None:
    closed, process = start(tmp_path, passwords=True)
    try:
        operator()
        await s.create(admin, "locked", f"{closed.host}/hcp/release:none", closed)
        await eventually(lambda: mentions(admin, "locked", "ValidReleaseImage", "credentials"), "refused")
        text = base64.b64encode(json.dumps(closed.auths).encode()).decode()
        body = {"data": {".dockerconfigjson": text}}
        await admin.patch(k.SECRETS, "locked-pull-secret", "clusters", body)
        # With the right account the registry answers, if only that it has no such image.
        await eventually(lambda: mentions(admin, "locked", "ValidReleaseImage", "does not exist"), "let in")
        await admin.delete(k.HOSTEDCLUSTERS, "locked", "clusters")
        await eventually(lambda: gone(admin, "locked"), "all is gone")
    finally:
        process.kill()
        process.wait()


async def test_pods_that_import_boot_disks_pull_with_the_clusters_login(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    await s.create(admin, "imports", image, registry)
    ns = "clusters-imports"

    async def begun() -> bool:
        return await admin.get_or_none(k.SECRETS, "pull-secret", ns) is not None

    async def listed(*wanted: str) -> bool:
        account = await admin.get(k.SERVICEACCOUNTS, "default", ns)
        return [one["name"] for one in account.get("imagePullSecrets") or []] == list(wanted)

    await eventually(begun, "the namespace and the copy of the pull secret")
    # As the controller of another platform makes it, with a login of its own.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": ns}}
    await admin.create({**account, "imagePullSecrets": [{"name": "theirs"}]})
    await admin.patch(k.HOSTEDCLUSTERS, "imports", "clusters", {"metadata": {"labels": {"look": "again"}}})
    await eventually(lambda: listed("theirs", "pull-secret"), "added to what is there")
    await admin.patch(k.SERVICEACCOUNTS, "default", ns, {"imagePullSecrets": [{"name": "new"}]})
    await eventually(lambda: listed("new", "pull-secret"), "added again without being asked")
    await admin.delete(k.HOSTEDCLUSTERS, "imports", "clusters")
    await eventually(lambda: gone(admin, "imports"), "all is gone")


async def test_a_registry_that_gets_trusted_or_comes_up_is_read_without_being_asked(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path
) -> None:
    operator()
    later = free_port()
    absent = f"localhost:{later}/hcp/release:1.36.3"
    await s.create(admin, "strange", image, registry, additionalTrustBundle={"name": ""})
    await s.create(admin, "silent", absent, registry)
    await eventually(lambda: mentions(admin, "strange", "ValidReleaseImage", "not trusted"), "not trusted")
    await eventually(lambda: mentions(admin, "silent", "ValidReleaseImage", "cannot be reached"), "not there")
    # The management cluster is told to trust the registry, the way the guides do it.
    trust = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust", "namespace": "openshift-config"}}
    await admin.apply({**trust, "data": {registry.host.replace(":", ".."): registry.ca_pem.decode()}})
    config = {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}}
    await admin.apply({**config, "spec": {"additionalTrustedCA": {"name": "trust"}}})
    await eventually(lambda: says(admin, "strange", "ValidReleaseImage", "True"), "trusted")
    # The other registry starts; its authority is put where the cluster's own trust is.
    started, process = start(tmp_path, passwords=False, port=later)
    try:
        assert await s.push_release(started, tmp_path, "1.36.3") == absent
        await admin.patch(
            k.CONFIGMAPS, "silent-trust", "clusters", {"data": {"ca-bundle.crt": started.ca_pem.decode()}}
        )
        await eventually(lambda: says(admin, "silent", "ValidReleaseImage", "True"), "it answers")
    finally:
        process.kill()
        process.wait()
    await admin.delete(k.IMAGE_CONFIGS, "cluster")
    for name in ("strange", "silent"):
        await admin.delete(k.HOSTEDCLUSTERS, name, "clusters")
        await eventually(lambda n=name: gone(admin, n), "all is gone")  # type: ignore[misc]


async def test_a_right_that_is_missing_is_told_and_used_when_it_comes(
    server: ApiServer,
    admin: Client,
    image: str,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = "rbac.authorization.k8s.io"
    everything = sorted({resource.group for resource in k.KNOWN.values()} - {"networking.k8s.io"})
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": everything, "resources": ["*"], "verbs": ["*"]},
    ]
    subject = {"apiGroup": group, "kind": "User", "name": "narrow"}

    def binding(role: str) -> Object:
        ref = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        metadata = {"name": f"narrow-{role}"}
        made = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": metadata}
        return {**made, "roleRef": ref, "subjects": [subject]}

    await admin.apply(
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "narrow"}, "rules": rules}
    )
    await admin.apply(binding("narrow"))
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"]["as"] = "narrow"
    path = tmp_path / "narrow.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    running = Running(load_config(path), monkeypatch)
    try:
        await s.create(admin, "narrow", image, registry)
        lacking = lambda: told(admin, "narrow", "ReconciliationSucceeded", "False", "networkpolicies")  # noqa: E731
        assert "forbidden" in (await eventually(lacking, "told"))["message"]
        await admin.apply(binding("cluster-admin"))

        async def made() -> bool:
            return bool(await admin.list(k.NETWORKPOLICIES, "clusters-narrow"))

        await eventually(made, "used")
        await eventually(lambda: says(admin, "narrow", "ReconciliationSucceeded", "True"), "recovers")
        await admin.delete(k.HOSTEDCLUSTERS, "narrow", "clusters")
        await eventually(lambda: gone(admin, "narrow"), "all is gone")
    finally:
        await running.stop()
