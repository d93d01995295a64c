"""Whoever takes over a Cluster API manager has its token: it opens no Secret and makes no VM outside hosted namespaces.

The two managers run for real, with the rights of `hcp install`, against a real API server that keeps an audit log: what
they may do is enough for their work, and nothing of it goes unused.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.definitions import VIRTUALIZATION, real
from tests.support.eventually import eventually
from tests.support.security import audit
from tests.support.security.managers import COMPONENTS, USER, Managers, as_account, followers

from hcp import payload
from hcp.api import generate, names
from hcp.controlplane import capi as objects
from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.controlplane.namespace import namespace
from hcp.hostedcluster.translate import params
from hcp.install import capi as rights
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.errors import Forbidden
from hcp.nodepool.health import machine_health_check, repair_template
from hcp.nodepool.machines import DeploymentInput, machine_deployment
from hcp.operator.capi import definition

Object = dict[str, Any]
HCP = Path(sys.executable).parent / "hcp"
HOSTED, ID = "clusters-demo", "demo-abcde"
BANK = "bank"
# Asked for by an admission plugin that OpenShift has and this server has not, and for nodes, which this test has not.
SPARED: set[audit.Right] = {
    ("cluster.x-k8s.io", f"{kind}/finalizers", "update")
    for kind in ("clusters", "machines", "machinesets", "machinedeployments")
} | {
    ("cluster.x-k8s.io", "machinedrainrules", verb) for verb in ("list", "watch")
}  # asked for before a node is drained


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[ApiServer]:
    directory = tmp_path_factory.mktemp("management")
    with s.management_server(directory, bin_dir, *audit.flags(directory)) as made:
        yield made


@pytest.fixture
async def admin(management: ApiServer) -> AsyncIterator[Client]:
    """An installed management cluster with one hosted namespace, and a namespace of somebody else."""
    async with Client(load_config(management.kubeconfig)) as client:
        patched = [
            definition(component, yaml.safe_load(path.read_text()))
            for component, folder in payload.ensure(list(COMPONENTS)).items()
            for path in sorted((folder / "manifests" / "crds").glob("*.yaml"))
        ]
        await crds_support.install(client, [*generate.crds(), *patched, *real(*VIRTUALIZATION)])
        command = [str(HCP), "install", "--image=x.example.com/hcp:1", "--development"]
        subprocess.run([*command, f"--kubeconfig={management.kubeconfig}"], check=True, capture_output=True)
        for name in ("clusters", BANK):
            await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await client.apply(secret("safe", BANK, key="money"))
        yield client


def secret(name: str, where: str, **data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": where}, "data": encoded}


def machine(name: str, where: str) -> Object:
    disk = {"metadata": {"name": "disk"}, "spec": {"storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
    spec = {
        "runStrategy": "Always",
        "dataVolumeTemplates": [disk],
        "template": {"spec": {"domain": {"devices": {}}, "evictionStrategy": "External"}},
    }
    metadata = {"name": name, "namespace": where}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec}


async def host(client: Client, management: ApiServer) -> None:
    """What the operator makes of a hosted cluster for Cluster API; the guest's API is the test's own server."""
    live = await client.get_or_none(k.HOSTEDCLUSTERS, "demo", "clusters")
    if live is None:
        wanted = crds_support.rendered_cluster("clusters")
        live = await client.create(crds_support.changed(wanted, "spec.release.image", "127.0.0.1:1/x:1"))
    p = params(live)
    await client.apply(namespace(p))
    for obj in (
        *objects.bindings(p),
        objects.secret_followers(p, followers()),
        hosted_control_plane(p, live),
        secret(f"{ID}-kubeconfig", HOSTED, value=management.kubeconfig.read_text()),
        secret("user-data", HOSTED, value="{}"),
    ):
        await client.apply(obj)
    ready = {"ready": True, "initialized": True, "externalManagedControlPlane": True, "version": "1.36.3"}
    await client.patch(k.HOSTEDCONTROLPLANES, "demo", HOSTED, {"status": ready}, subresource="status")
    await client.apply(objects.kubevirt_cluster(p))
    await client.patch(k.KUBEVIRTCLUSTERS, ID, HOSTED, {"status": {"ready": True}}, subresource="status")
    await client.apply(objects.cluster(p))


async def pool(client: Client) -> Object:
    wanted = crds_support.rendered_pool("clusters", "workers")
    wanted["spec"] |= {"clusterName": "demo", "replicas": 1}
    spec = {
        "virtualMachineTemplate": {"metadata": {}, "spec": machine("x", "x")["spec"]},
        "virtualMachineBootstrapCheck": {"checkStrategy": "none"},
    }
    await client.apply(
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "KubevirtMachineTemplate",
            "metadata": {"name": "workers", "namespace": HOSTED},
            "spec": {"template": {"spec": spec}},
        }
    )
    await client.apply(machine_deployment(DeploymentInput(HOSTED, wanted, ID, "workers", "user-data", "1.36.3", False)))
    quickly = {names.ANNOTATION_MHC_TIMEOUT: "1s"}
    await client.apply(repair_template(HOSTED, wanted, ID, quickly))
    await client.apply(machine_health_check(HOSTED, wanted, ID, quickly))
    return wanted


@pytest.mark.parametrize("account", COMPONENTS.values())
async def test_no_secret_opens_to_a_managers_token_elsewhere(
    management: ApiServer, admin: Client, account: str
) -> None:
    await host(admin, management)
    async with await as_account(admin, management, account) as taken:
        for place in (BANK, names.OPERATOR_NAMESPACE, "clusters", "kube-system"):
            with pytest.raises(Forbidden):
                await taken.get(k.SECRETS, "safe", place)
            with pytest.raises(Forbidden):
                await taken.list(k.SECRETS, place)
        sweeps = [taken.list(k.SECRETS), taken.list(k.PODS), taken.list(k.CONFIGMAPS)]
        if account not in followers():  # official builds follow Secrets there; ours ask for them one by one
            sweeps.append(taken.list(k.SECRETS, HOSTED))
        for sweep in sweeps:
            with pytest.raises(Forbidden):
                await sweep
        # Nor can it give itself what it lacks.
        group = "rbac.authorization.k8s.io"
        ref = {"apiGroup": group, "kind": "ClusterRole", "name": names.hosted_role(account)}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": names.OPERATOR_NAMESPACE}
        with pytest.raises(Forbidden):
            await taken.create(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": "mine", "namespace": BANK},
                    "roleRef": ref,
                    "subjects": [subject],
                }
            )
        # In a hosted namespace it opens the ones its work names.
        opened = await eventually(lambda: taken.get(k.SECRETS, "user-data", HOSTED), "its rights there count")
        assert opened["data"]


async def test_no_machine_is_made_elsewhere(management: ApiServer, admin: Client) -> None:
    await host(admin, management)
    async with await as_account(admin, management, names.CAPI_PROVIDER) as taken:
        for place in (BANK, names.OPERATOR_NAMESPACE, "default"):
            with pytest.raises(Forbidden):
                await taken.create(machine("mine", place))
        with pytest.raises(Forbidden):
            await taken.list(k.VIRTUALMACHINES)
        await eventually(lambda: taken.create(machine("probe", HOSTED)), "its rights there count")
        await taken.delete(k.VIRTUALMACHINES, "probe", HOSTED)


async def test_the_managers_do_their_work_with_these_rights_and_use_them_all(
    management: ApiServer, admin: Client, tmp_path: Path
) -> None:
    await host(admin, management)
    await pool(admin)
    managers = Managers(management, tmp_path)
    await managers.start(admin)
    try:

        async def made() -> bool:
            assert managers.running(), managers.log(names.CAPI_CORE)[-2000:] + managers.log(names.CAPI_PROVIDER)[-2000:]
            return bool(await admin.list(k.VIRTUALMACHINES, HOSTED))

        await eventually(made, "the provider makes a machine")
        [vm] = await admin.list(k.VIRTUALMACHINES, HOSTED)
        name = vm["metadata"]["name"]
        await boot(admin, name)

        async def joined() -> bool:
            [found] = await admin.list(k.MACHINES, HOSTED)
            return (found.get("status") or {}).get("phase") == "Running"

        await eventually(joined, "the machine is a node")
        await report(admin, name, ready=False)

        async def sick() -> bool:
            return await admin.get_or_none(k.NODEREPAIRS, name, HOSTED) is not None

        await eventually(sick, "the health check asks for a repair")
        await report(admin, name, ready=True)

        async def well() -> bool:
            return not await sick()

        await eventually(well, "and takes it back")
        await admin.apply(secret("user-data", HOSTED, value='{"new": true}'))
        await nudge(admin, name)
        copied = base64.b64encode(b'{"new": true}').decode()

        async def renewed() -> bool:
            copies = [one for one in await admin.list(k.SECRETS, HOSTED) if one["metadata"]["name"] != "user-data"]
            return any(copied in (one.get("data") or {}).values() for one in copies)

        await eventually(renewed, "its user data is renewed")
        # Its infra node is drained: what is done then is the operator's to say, and the provider ends nothing.
        body = {"status": {"evacuationNodeName": "infra-1", "interfaces": [{"ipAddress": "10.9.9.8"}]}}
        await admin.patch(k.VMIS, name, HOSTED, body)

        async def looked_at() -> bool:
            await nudge(admin, name)
            found = (await admin.get(k.KUBEVIRTMACHINES, name, HOSTED))["status"].get("addresses") or []
            wanted = "cannot delete resource" in managers.log(names.CAPI_PROVIDER)
            return wanted or any(one["address"] == "10.9.9.8" for one in found)

        await eventually(looked_at, "the provider has seen it")
        assert not (await admin.get(k.VMIS, name, HOSTED))["metadata"].get("deletionTimestamp")
        await admin.delete(k.MACHINEDEPLOYMENTS, "workers", HOSTED, propagation="Background")

        async def gone() -> bool:
            left = await admin.list(k.MACHINES, HOSTED), await admin.list(k.VIRTUALMACHINES, HOSTED)
            return left == ([], [])

        await eventually(gone, "and goes again")
        await admin.delete(k.CAPI_CLUSTERS, ID, HOSTED)

        async def cluster_gone() -> bool:
            return await admin.get_or_none(k.CAPI_CLUSTERS, ID, HOSTED) is None

        await eventually(cluster_gone, "with its cluster")
    finally:
        managers.stop()
    given = {
        names.CAPI_CORE: [*rights.core_rules(), *rights.core_hosted_rules()],
        names.CAPI_PROVIDER: [*rights.provider_rules(), *rights.provider_hosted_rules()],
    }
    for account in followers():
        given[account] += rights.follower_rules()

    async def all_used() -> bool:
        requests = list(audit.read(management.directory))
        for account, rules in given.items():
            asked = audit.used(requests, USER.format(account))
            assert not audit.listed(audit.granted(rules) - asked - SPARED), account
        return True

    # A watch is written down when it is over, which the server finds out a moment after the managers have gone.
    await eventually(all_used, "every right is used")
    # Refused was only what the attacks above asked for; the managers themselves got all they wanted.
    # Official builds of the provider want to end machines whose infra node is drained.
    for account in set(COMPONENTS.values()) - ({names.CAPI_PROVIDER} & set(followers())):
        assert "forbidden" not in managers.log(account), managers.log(account)[-3000:]


async def nudge(client: Client, name: str) -> None:
    """The provider looks at a machine every minute; a change has it look at once."""
    where = (k.KUBEVIRTMACHINES, name, HOSTED)
    stamp = (await client.get(*where))["metadata"]["resourceVersion"]
    await client.patch(*where, {"metadata": {"annotations": {"nudge": stamp}}})


async def boot(client: Client, name: str) -> None:
    """What KubeVirt and the kubelet do."""
    running: Object = {"phase": "Running", "interfaces": [{"ipAddress": "10.9.9.9"}]}
    ready: list[Object] = [{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": "True"}]
    metadata = {"name": name, "namespace": HOSTED}
    vmi = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": {"domain": {"devices": {}}, "evictionStrategy": "External"},
    }
    await client.apply(vmi)
    body: Object = {"status": {**running, "conditions": ready}}
    await client.patch(k.VMIS, name, HOSTED, body)
    body = {"status": {"ready": True, "created": True, "conditions": ready}}
    await client.patch(k.VIRTUALMACHINES, name, HOSTED, body, subresource="status")
    await client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    await report(client, name, ready=True)


async def report(client: Client, name: str, *, ready: bool) -> None:
    """What a kubelet says of its node, since long ago."""
    since = "2026-01-01T00:00:00Z"
    status = {"type": "Ready", "status": str(ready), "reason": "x", "message": "x", "lastTransitionTime": since}
    await client.patch(k.NODES, name, None, {"status": {"conditions": [status]}}, subresource="status")
