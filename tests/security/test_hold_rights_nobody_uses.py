"""Whoever takes over the operator has its rights: none of them is there for nothing.

A hosted cluster and a node pool are made, changed and deleted by an operator that has exactly the rights of
`hcp install`. The audit logs of the API servers say what it asked for; a right that nobody used fails the test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support import node_pools as pools
from tests.support.api_server import ApiServer, account_token
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.machines import instance, launcher, machine, run_launcher, virtual_machine
from tests.support.registry import start as start_registry
from tests.support.rights import operators_count
from tests.support.security import audit
from tests.support.security.managers import USER

from hcp import payload
from hcp.api import names
from hcp.api.names import LABEL_IGNITION_SERVER, MARK_IGNITION_REACHED
from hcp.controlplane.meta import LABEL_COMPONENT
from hcp.install import rights
from hcp.install.options import Options
from hcp.kube import Client, load_config
from hcp.kube import resources as k

Object = dict[str, Any]
HCP = Path(sys.executable).parent / "hcp"
ME = USER.format(rights.ACCOUNT)
# Rights that are asked about, not asked for: by admission, for whoever writes another object.
ADMISSION: set[audit.Right] = {
    (names.GROUP, "privileges", "use"),
    (names.GROUP, "hostedclusters/finalizers", "update"),
    (names.GROUP, "hostedcontrolplanes/finalizers", "update"),
    ("rbac.authorization.k8s.io", "clusterroles", "bind"),
    ("discovery.k8s.io", "endpointslices/restricted", "create"),
    ("route.openshift.io", "routes/custom-host", "create"),
    ("route.openshift.io", "routes/custom-host", "update"),
}

# Rights of rarer paths.
ELSEWHERE: dict[audit.Right, str] = {
    ("kubevirt.io", "virtualmachines", "get"): "a node whose machine was made anew asks for a certificate",
    ("kubevirt.io", "virtualmachines", "patch"): "a cluster falls asleep or wakes up",
    ("coordination.k8s.io", "leases", "get"): "a write to the lease was answered with a conflict: maybe it was our own",
    ("", "serviceaccounts", "create"): "a cluster whose release has storage gets its first node",
    ("", "persistentvolumeclaims", "delete"): "a control plane of three etcd members becomes one of one",
    ("", "services", "get"): "a base domain of one's own: the Service that its owner made is read",
    ("", "resourcequotas", "create"): "a cluster becomes available, which this one does not",
    ("", "resourcequotas", "patch"): "a cluster becomes available, which this one does not",
    ("", "events", "patch"): "what an event tells happens again, more than some minutes later",
}


@contextmanager
def audited(directory: Path, bin_dir: Path) -> Iterator[ApiServer]:
    """An API server that writes down what it is asked, with the controllers that deletion needs."""
    directory.mkdir()
    with s.management_server(directory, bin_dir, *audit.flags(directory)) as made:
        yield made


async def as_operator(server: ApiServer, admin: Client) -> Path:
    """Install, and a kubeconfig with a token of the operator's account."""
    command = [str(HCP), "install", "--image=x.example.com/hcp:1", "--development"]
    subprocess.run([*command, f"--kubeconfig={server.kubeconfig}"], check=True, capture_output=True)
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": await account_token(admin, rights.ACCOUNT, names.OPERATOR_NAMESPACE)}
    path = server.directory / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    await operators_count(path)  # else what is refused meanwhile would count as missing
    return path


@contextmanager
def running(kubeconfig: Path) -> Iterator[None]:
    log = kubeconfig.with_name("operator.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                HCP,
                "operator",
                "run",
                f"--kubeconfig={kubeconfig}",
                "--metrics-port=-1",
                "--internal-registries=localhost",
            ],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        process.terminate()
        process.wait(300)


async def a_cluster_comes_and_goes(server: ApiServer, directory: Path) -> None:
    registry, process = start_registry(directory, passwords=False)
    try:
        async with Client(load_config(server.kubeconfig)) as admin:
            kubeconfig = await as_operator(server, admin)
            await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
            await crds_support.install(admin, [open_crd(k.INGRESS_CONFIGS), open_crd(k.PODMONITORS)])
            ingress = {"apiVersion": "config.openshift.io/v1", "kind": "Ingress", "metadata": {"name": "cluster"}}
            await admin.apply({**ingress, "spec": {"domain": "apps.example.test"}})
            image = await s.push_release(registry, directory, "1.36.3")
            ns = "clusters-demo"
            with running(kubeconfig):
                await s.create(admin, "demo", image, registry)
                body = {"metadata": {"annotations": {names.ANNOTATION_AUDIT_LOG_VOLUME: "1Gi"}}}
                await admin.patch(k.HOSTEDCLUSTERS, "demo", "clusters", body)

                async def address() -> None:
                    await s.give_address(admin, ns, "127.0.0.1")

                await eventually(lambda: _there(admin, k.DEPLOYMENTS, "kube-apiserver", ns), "it is made", address)
                await admin.apply(
                    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": ns}}
                )
                await eventually(lambda: _some(admin, k.CAPI_CLUSTERS, ns), "Cluster API knows it")
                await eventually(lambda: _some(admin, k.PODMONITORS, ns), "Prometheus knows it")
                await s.report_ready(admin, ns)
                await eventually(lambda: _some(admin, k.PDBS, ns), "budgets come with the pods")
                await eventually(lambda: _some(admin, k.CONTROLPLANECOMPONENTS, ns), "parts are told of")
                pod = {"name": "left", "namespace": ns, "labels": {LABEL_COMPONENT: "etcd"}}
                spec = {"containers": [{"name": "x", "image": "x"}], "nodeName": "none"}
                await admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": spec})
                pool = pools.node_pool("clusters")
                await admin.create(pool)
                await eventually(lambda: _judged(admin), "its pool is looked at")
                await admin.patch(k.HOSTEDCLUSTERS, "demo", "clusters", {"spec": {"pausedUntil": "true"}})
                await eventually(lambda: _paused(admin, ns), "it rests")
                await admin.delete(k.HOSTEDCLUSTERS, "demo", "clusters")
                await eventually(lambda: _gone(admin, ns), "it is gone", lambda: _end_pods(admin, ns))
    finally:
        process.kill()
        process.wait()


async def a_pool_comes_and_goes(server: ApiServer) -> None:
    """The machines' side; the guest's API is the same server."""
    async with Client(load_config(server.kubeconfig)) as admin:
        await pools.prepare(admin)
        kubeconfig = await as_operator(server, admin)
        home, hosted = "teams", "teams-demo"
        await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
        await pools.hosted_cluster(admin, home, server.kubeconfig)
        body = {"spec": {"additionalTrustBundle": {"name": "absent"}}}
        await admin.patch(k.HOSTEDCLUSTERS, "demo", home, body)
        async with pools.running_operator(kubeconfig):
            await admin.create(pools.node_pool(home, management={"autoRepair": True, "upgradeType": "Replace"}))
            kept = crds_support.changed(
                pools.node_pool(home, "kept"), "spec.platform.kubevirt.rootVolume.cacheStrategy", {"type": "PVC"}
            )
            await admin.create(kept)
            device = [{"deviceName": "example.com/gpu", "count": 1}]
            await admin.create(
                crds_support.changed(pools.node_pool(home, "gpus"), "spec.platform.kubevirt.hostDevices", device)
            )
            await eventually(lambda: _some(admin, k.DATAVOLUMES, hosted), "a disk image")
            await eventually(lambda: _there(admin, k.MACHINEDEPLOYMENTS, "demo", hosted), "machines")
            await _reached(admin)
            await eventually(lambda: _there(admin, k.MACHINEHEALTHCHECKS, "demo", hosted), "a health check")
            await admin.create(machine(home))
            metadata: Object = {"name": f"vm-{home}", "namespace": hosted, "finalizers": ["example.com/held"]}
            group = "infrastructure.cluster.x-k8s.io/v1alpha1"
            await admin.create({"apiVersion": group, "kind": "KubevirtMachine", "metadata": metadata})
            vm = await admin.create(instance(home, "10.9.0.5"))
            await admin.create(launcher(vm))
            await run_launcher(admin, vm, "10.9.0.5")
            ports = [{"port": 80, "targetPort": 8080}]
            web = {"name": "web", "namespace": home}
            spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": ports}
            await admin.create({"apiVersion": "v1", "kind": "Service", "metadata": web, "spec": spec})
            await eventually(lambda: _some(admin, k.ENDPOINTSLICES, hosted), "a load balancer")
            await _stray(admin, hosted)
            await admin.delete(k.SERVICES, "web", home)
            await eventually(lambda: _none(admin, k.ENDPOINTSLICES, hosted), "which goes")
            await _evicted(admin, hosted, f"vm-{home}")
            await _sick(admin, hosted, f"vm-{home}")
            # Another disk: a new template, and the old one is not needed any more.
            before = await _templates(admin, hosted)
            change = {
                "spec": {"platform": {"kubevirt": {"compute": {"memory": "9Gi"}}}, "management": {"autoRepair": False}}
            }
            await admin.patch(k.NODEPOOLS, "demo", home, change)

            async def replaced() -> bool:
                left = await _templates(admin, hosted)
                return bool(left) and not left & before

            await eventually(replaced, "the template is replaced")
            await eventually(lambda: _none(admin, k.MACHINEHEALTHCHECKS, hosted), "no health check")
            await eventually(lambda: _none(admin, k.NODEREPAIRS, hosted), "nor repairs")
            labels = {names.LABEL_NODEPOOL_NAME: "demo", names.LABEL_INFRA_ID: "demo-abcde"}
            await admin.create(virtual_machine(f"vm-{home}", hosted, labels=labels))
            owned = {names.ANNOTATION_NODEPOOL: f"{home}/demo"}
            metadata = {"name": "old", "namespace": hosted, "annotations": owned}
            await admin.create({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineSet", "metadata": metadata})
            for name in ("demo", "kept", "gpus"):
                await admin.delete(k.NODEPOOLS, name, home)
            await eventually(lambda: _none(admin, k.NODEPOOLS, home), "the pools are gone")


async def test_every_right_of_the_operator_is_used(tmp_path: Path, bin_dir: Path) -> None:
    payload.ensure(["cluster-api", "cluster-api-kubevirt"])
    requests: list[audit.Asked] = []
    with audited(tmp_path / "first", bin_dir) as server:
        await a_cluster_comes_and_goes(server, tmp_path)
    requests += audit.read(server.directory)  # a watch is written down when it is over
    with audited(tmp_path / "second", bin_dir) as server:
        await a_pool_comes_and_goes(server)
    requests += audit.read(server.directory)
    given = audit.granted([*rights.operator_rules(), *rights.own_rules(Options())])
    unused = given - audit.used(requests, ME) - ADMISSION - ELSEWHERE.keys()
    assert not audit.listed(unused)
    assert not audit.refused(requests, ME), "and nothing was missing"


@pytest.mark.parametrize("rules", [[{"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]}]])
def test_a_star_is_no_list_of_rights(rules: list[Object]) -> None:
    with pytest.raises(AssertionError, match="a star"):
        audit.granted(rules)


async def _reached(client: Client) -> None:
    """What the bootstrap server notes when a machine has fetched its document."""
    for one in await client.list(k.SECRETS, names.OPERATOR_NAMESPACE, labels=LABEL_IGNITION_SERVER):
        body = {"metadata": {"annotations": {MARK_IGNITION_REACHED: "True"}}}
        await client.patch(k.SECRETS, one["metadata"]["name"], names.OPERATOR_NAMESPACE, body)


async def _stray(client: Client, ns: str) -> None:
    """A slice that no load balancer needs any more."""
    [live] = await client.list(k.ENDPOINTSLICES, ns)
    metadata = {"name": "stray", "namespace": ns, "labels": live["metadata"]["labels"]}
    await client.create({**live, "metadata": metadata})

    async def gone() -> bool:
        return await client.get_or_none(k.ENDPOINTSLICES, "stray", ns) is None

    await eventually(gone, "it is taken away")


async def _evicted(client: Client, ns: str, name: str) -> None:
    """What KubeVirt notes when the infra node is drained: the machine is moved. Then that is called off."""
    able = {"type": "LiveMigratable", "status": "True"}
    there = {"phase": "Running", "nodeName": "infra-1", "evacuationNodeName": "infra-1", "conditions": [able]}
    await client.patch(k.VMIS, name, ns, {"spec": {"evictionStrategy": "External"}, "status": there})
    await eventually(lambda: _some(client, k.VMI_MIGRATIONS, ns), "it is moved")
    await client.patch(k.VMIS, name, ns, {"status": {"evacuationNodeName": ""}})


async def _sick(client: Client, ns: str, name: str) -> None:
    """What the health check asks for when the machine's node is not ready: its VM is restarted."""
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    live = await client.patch(k.MACHINES, name, ns, {"status": {"nodeRef": {"name": name}}}, subresource="status")
    group, uid = live["apiVersion"], live["metadata"]["uid"]
    owner = {"apiVersion": group, "kind": "Machine", "name": name, "uid": uid}
    marks = {names.ANNOTATION_NODEPOOL: live["metadata"]["annotations"][names.ANNOTATION_NODEPOOL]}
    metadata = {"name": name, "namespace": ns, "ownerReferences": [owner], "annotations": marks}
    await client.create({"apiVersion": names.API_VERSION, "kind": "NodeRepair", "metadata": metadata, "spec": {}})
    await eventually(lambda: _none(client, k.VMIS, ns), "its VM is restarted")


async def _templates(client: Client, ns: str) -> set[str]:
    """Those of the pool `demo`."""
    found = await client.list(k.KUBEVIRTMACHINETEMPLATES, ns)
    marks = {one["metadata"]["name"]: one["metadata"]["annotations"][names.ANNOTATION_NODEPOOL] for one in found}
    return {name for name, pool in marks.items() if pool.endswith("/demo")}


async def _there(client: Client, resource: k.Resource, name: str, ns: str) -> bool:
    return await client.get_or_none(resource, name, ns) is not None


async def _some(client: Client, resource: k.Resource, ns: str) -> bool:
    return bool(await client.list(resource, ns))


async def _none(client: Client, resource: k.Resource, ns: str) -> bool:
    return not await client.list(resource, ns)


async def _judged(client: Client) -> bool:
    live = await client.get(k.NODEPOOLS, "demo", "clusters")
    return bool((live.get("status") or {}).get("conditions"))


async def _paused(client: Client, ns: str) -> bool:
    return all(one["spec"].get("paused") for one in await client.list(k.CAPI_CLUSTERS, ns))


async def _gone(client: Client, ns: str) -> bool:
    return await client.get_or_none(k.NAMESPACES, ns) is None


async def _end_pods(client: Client, ns: str) -> None:
    """There is no kubelet to say that a pod has ended, and nobody who lets go of claims."""
    for claim in await client.list(k.PVCS, ns):
        if claim["metadata"].get("deletionTimestamp"):
            await client.patch(k.PVCS, claim["metadata"]["name"], ns, {"metadata": {"finalizers": None}})
    for pod in await client.list(k.PODS, ns):
        if pod["metadata"].get("deletionTimestamp"):
            await client.delete(k.PODS, pod["metadata"]["name"], ns, grace=0, missing_ok=True)
