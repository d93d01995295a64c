"""A HostedCluster whose name makes `<namespace>-<name>` somebody else's namespace: it is not touched."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.security.attacker import enter

from hcp.api import names
from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.hostedcluster.translate import params
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import Forbidden

Object = dict[str, Any]
VICTIM = "clusters-team-prod"  # of HostedCluster clusters-team/prod; clusters/team-prod would have it too


def cluster(namespace: str, name: str, **spec: Any) -> Object:
    """Its release can never be read, which holds up neither the namespace nor what tells of it."""
    made = crds_support.changed(crds_support.rendered_cluster(namespace, name), "spec.release.image", "127.0.0.1:1/x:1")
    made["spec"] |= {"infraID": f"{name}-id", **spec}
    return made


async def state(client: Client, namespace: str) -> dict[str, str]:
    """The version of the namespace and of everything in it that the operator could write."""
    found = {"": (await client.get(k.NAMESPACES, namespace))["metadata"]["resourceVersion"]}
    for resource in (*s.KINDS, k.MACHINEDEPLOYMENTS, k.MACHINES):
        for item in await client.list(resource, namespace):
            found[f"{item['kind']} {item['metadata']['name']}"] = item["metadata"]["resourceVersion"]
    return found


async def problem(client: Client, namespace: str, name: str) -> str:
    """What the refused cluster says; empty while it says nothing of the kind."""
    live = await client.get(k.HOSTEDCLUSTERS, name, namespace)
    found = {c["type"]: c for c in (live.get("status") or {}).get("conditions") or []}
    refused = found.get("ValidConfiguration", {})
    if refused.get("reason") != "ForeignNamespace":
        return ""
    assert found["Available"]["status"] == "False"
    assert found["Available"]["message"] == refused["message"]
    return str(refused["message"])


async def refused(client: Client, namespace: str, name: str) -> str:
    async def told() -> bool:
        return bool(await problem(client, namespace, name))

    await eventually(told, "the cluster says what stands in its way")
    return await problem(client, namespace, name)


async def gone(client: Client, namespace: str, name: str) -> None:
    async def is_gone() -> bool:
        return await client.get_or_none(k.HOSTEDCLUSTERS, name, namespace) is None

    await eventually(is_gone, "the HostedCluster is gone")


async def owned(client: Client, namespace: str, name: str) -> Object:
    """Wait until the cluster has a namespace of its own with a projection in it."""
    hosted = f"{namespace}-{name}"

    async def made() -> bool:
        return await client.get_or_none(k.HOSTEDCONTROLPLANES, name, hosted) is not None

    await eventually(made, "the control plane begins")
    live = await client.get(k.NAMESPACES, hosted)
    uid = (await client.get(k.HOSTEDCLUSTERS, name, namespace))["metadata"]["uid"]
    assert live["metadata"]["annotations"][names.ANNOTATION_CLUSTER_UID] == uid
    return live


async def test_a_namespace_that_runs_the_cluster_is_neither_changed_nor_deleted(
    management: ApiServer, admin: Client, operator: s.OperatorProcess
) -> None:
    async with (await enter(admin, management, "kube")).client as team:
        with pytest.raises(Forbidden):
            await team.delete(k.NAMESPACES, "kube-system")
        before = await state(admin, "kube-system")
        await team.create(cluster("kube", "system"))
        assert "kube-system, which exists and was not made for this HostedCluster" in await refused(
            team, "kube", "system"
        )
        assert await state(admin, "kube-system") == before
        await team.delete(k.HOSTEDCLUSTERS, "system", "kube")
        await gone(team, "kube", "system")
    assert await state(admin, "kube-system") == before


async def test_a_paused_cluster_does_not_touch_it_either(
    management: ApiServer, admin: Client, operator: s.OperatorProcess
) -> None:
    """A pause is passed on to Cluster API's Cluster of the same id."""
    await admin.create(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Cluster",
            "metadata": {
                "name": "system-id",
                "namespace": "kube-system",
                "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: "kube-system"},
            },
            "spec": {"paused": False},
        }
    )
    before = await state(admin, "kube-system")
    async with (await enter(admin, management, "kube")).client as team:
        await team.create(cluster("kube", "system", pausedUntil="true"))

        async def rests() -> bool:
            live = await team.get(k.HOSTEDCLUSTERS, "system", "kube")
            found = {c["type"]: c["status"] for c in (live.get("status") or {}).get("conditions") or []}
            return found.get("ReconciliationActive") == "False"

        await eventually(rests, "the pause is seen")
        assert await state(admin, "kube-system") == before
        await team.delete(k.HOSTEDCLUSTERS, "system", "kube")
        await gone(team, "kube", "system")
    assert await state(admin, "kube-system") == before


async def test_another_tenants_control_plane_is_out_of_reach_by_a_clever_name(
    management: ApiServer, admin: Client, operator: s.OperatorProcess
) -> None:
    async with (
        (await enter(admin, management, "clusters-team")).client as victim,
        (await enter(admin, management, "clusters")).client as team,
    ):
        await victim.create(cluster("clusters-team", "prod"))
        await owned(admin, "clusters-team", "prod")
        await admin.create(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "kind": "MachineDeployment",
                "metadata": {"name": "workers", "namespace": VICTIM},
            }
        )
        machines = await admin.get(k.MACHINEDEPLOYMENTS, "workers", VICTIM)
        # A pool of a cluster that does not exist, with the finalizer that asks for tidying up.
        pool = crds_support.rendered_pool("clusters", "workers")
        pool["spec"]["clusterName"] = "team-prod"
        pool["metadata"]["finalizers"] = [names.FINALIZER]
        await team.create(pool)
        await team.delete(k.NODEPOOLS, "workers", "clusters")
        await eventually(lambda: _has_not(team, k.NODEPOOLS, "workers", "clusters"), "the pool is gone")
        # The cluster itself, with a pool of the same name.
        await team.create(cluster("clusters", "team-prod"))
        assert "belongs to HostedCluster clusters-team/prod" in await refused(team, "clusters", "team-prod")
        live = await team.get(k.HOSTEDCLUSTERS, "team-prod", "clusters")
        told = {c["type"]: c["message"] for c in live["status"]["conditions"]}
        assert told["EtcdAvailable"] == "StatefulSet etcd does not exist yet", "nothing is told of the other's pods"
        pool["metadata"].pop("finalizers")
        await team.create(pool)
        await team.delete(k.HOSTEDCLUSTERS, "team-prod", "clusters")
        await gone(team, "clusters", "team-prod")
        await eventually(lambda: _has_not(team, k.NODEPOOLS, "workers", "clusters"), "the pool is gone")
        assert await admin.get(k.MACHINEDEPLOYMENTS, "workers", VICTIM) == machines
        await owned(admin, "clusters-team", "prod")
        await victim.delete(k.HOSTEDCLUSTERS, "prod", "clusters-team")
        await gone(victim, "clusters-team", "prod")
    await eventually(lambda: _has_not(admin, k.NAMESPACES, VICTIM), "with its own cluster it goes")


async def test_the_cluster_goes_on_by_itself_once_the_namespace_is_gone(
    management: ApiServer, admin: Client, operator: s.OperatorProcess
) -> None:
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "squat-later"}})
    async with (await enter(admin, management, "squat")).client as team:
        await team.create(cluster("squat", "later"))
        await refused(team, "squat", "later")
        # Nothing asks again for an hour: only the end of the namespace can start the next pass.
        await admin.delete(k.NAMESPACES, "squat-later")
        await owned(admin, "squat", "later")
        await team.delete(k.HOSTEDCLUSTERS, "later", "squat")
        await gone(team, "squat", "later")


async def test_a_namespace_that_took_the_place_of_the_clusters_own_is_not_deleted_with_it(
    management: ApiServer, admin: Client
) -> None:
    running = s.OperatorProcess(management)
    try:
        async with (await enter(admin, management, "swap")).client as team:
            made = await team.create(cluster("swap", "place"))
            await owned(admin, "swap", "place")
            running.kill()
            await admin.delete(k.NAMESPACES, "swap-place")
            await eventually(lambda: _has_not(admin, k.NAMESPACES, "swap-place"), "it is gone")
            # The namesake even claims the cluster, as one of an earlier HostedCluster would.
            claims = {names.ANNOTATION_CLUSTER: "swap/place", names.ANNOTATION_CLUSTER_UID: "another"}
            labels = {names.LABEL_CONTROL_PLANE_NAMESPACE: "true"}
            metadata = {"name": "swap-place", "annotations": claims, "labels": labels}
            await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            before = await state(admin, "swap-place")
            running = s.OperatorProcess(management)
            assert "left from an earlier HostedCluster" in await refused(team, "swap", "place")
            await team.delete(k.HOSTEDCLUSTERS, "place", "swap")
            await gone(team, "swap", "place")
            assert made["metadata"]["uid"] != "another"
            assert {k: v for k, v in (await state(admin, "swap-place")).items() if "kube-root-ca" not in k} == before
    finally:
        running.kill()


async def test_what_an_older_operator_made_is_kept_and_what_it_took_over_is_not(
    management: ApiServer, admin: Client
) -> None:
    """Older operators wrote no UID: the proof is the HostedControlPlane, and that the cluster is older."""
    async with (await enter(admin, management, "before")).client as team:
        taken = {names.ANNOTATION_CLUSTER: "before/taken"}
        await admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "before-taken", "annotations": taken}}
        )
        await asyncio.sleep(1.1)  # times of objects have whole seconds: what follows is made in another
        for name in ("taken", "made", "empty"):
            live = await team.create(
                cluster("before", name, clusterID=f"00000000-0000-4000-8000-00000000000{len(name)}")
            )
            if name != "taken":
                marks = {names.ANNOTATION_CLUSTER: f"before/{name}"}
                metadata = {"name": f"before-{name}", "annotations": marks}
                await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            if name != "empty":
                await admin.create(hosted_control_plane(params(live), live))
        running = s.OperatorProcess(management)
        try:
            await refused(team, "before", "taken")
            await refused(team, "before", "empty")

            async def marked() -> bool:
                found = await admin.get(k.NAMESPACES, "before-made")
                return names.ANNOTATION_CLUSTER_UID in found["metadata"]["annotations"]

            await eventually(marked, "what it made carries the UID from now on")
            for name in ("taken", "made", "empty"):
                await team.delete(k.HOSTEDCLUSTERS, name, "before")
                await gone(team, "before", name)
        finally:
            running.kill()
    for name in ("taken", "empty"):
        left = await admin.get(k.NAMESPACES, f"before-{name}")
        assert "deletionTimestamp" not in left["metadata"]
        assert left["metadata"]["annotations"] == {names.ANNOTATION_CLUSTER: f"before/{name}"}
    await eventually(lambda: _has_not(admin, k.NAMESPACES, "before-made"), "its own goes")


async def _has_not(client: Client, resource: k.Resource, name: str, namespace: str | None = None) -> bool:
    return await client.get_or_none(resource, name, namespace) is None
