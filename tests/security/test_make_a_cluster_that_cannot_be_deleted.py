"""A hosted cluster whose infra cluster nobody can ask: deleting it ends all the same, and says what was left."""

from __future__ import annotations

import base64
import copy
from functools import partial
from typing import Any

import yaml
from tests.support import management as s
from tests.support.crds import install
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp import pki
from hcp.api import generate, names
from hcp.kube import Client
from hcp.kube import resources as k

Object = dict[str, Any]
HELD = {"metadata": {"finalizers": ["provider.example.com/waits-for-its-infra-cluster"]}}


def kubeconfig(**user: Any) -> str:
    ca = base64.b64encode(pki.new_ca("away").cert_pem).decode()
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


async def external(attacker: Attacker, name: str, text: str) -> None:
    await attacker.secret(f"{name}-infra", kubeconfig=text)
    credentials = {"infraNamespace": "vms", "infraKubeConfigSecret": {"name": f"{name}-infra", "key": "kubeconfig"}}
    await attacker.cluster(name, platform={"type": "KubeVirt", "kubevirt": {"credentials": credentials}})


async def held(admin: Client, hosted: str) -> None:
    """As Cluster API's provider holds its objects: it would let go only after it has asked the infra cluster."""

    async def made() -> bool:
        return bool(await admin.list(k.CAPI_CLUSTERS, hosted) and await admin.list(k.KUBEVIRTCLUSTERS, hosted))

    await eventually(made, "Cluster API has its objects")
    for resource in (k.CAPI_CLUSTERS, k.KUBEVIRTCLUSTERS):
        for item in await admin.list(resource, hosted):
            await admin.patch(resource, item["metadata"]["name"], hosted, HELD)


async def test_without_an_infra_cluster_deletion_ends(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess
) -> None:
    await external(attacker, "refused", kubeconfig(tokenFile="/var/run/secrets/token"))
    await external(attacker, "away", kubeconfig(token="x"))
    for name in ("refused", "away"):
        await held(admin, attacker.hosted(name))

    async def copied() -> bool:
        return await admin.get_or_none(k.SECRETS, names.INFRA_CREDENTIALS, attacker.hosted("away")) is not None

    await eventually(copied, "the good kubeconfig is in use")
    for name in ("refused", "away"):
        await attacker.client.delete(k.HOSTEDCLUSTERS, name, attacker.namespace)

    async def gone(name: str) -> bool:
        left = await attacker.client.get_or_none(k.HOSTEDCLUSTERS, name, attacker.namespace)
        return left is None and await admin.get_or_none(k.NAMESPACES, attacker.hosted(name)) is None

    async def events(name: str) -> list[str]:
        found = await admin.list(k.EVENTS, attacker.namespace)
        mine = [e for e in found if e["involvedObject"]["name"] == name]
        return [e["message"] for e in mine if e["reason"] == "CloudResourcesDeletionTimedOut"]

    # Nobody ever had a kubeconfig that could be used: there is nothing to wait for.
    await eventually(lambda: gone("refused"), "the refused one is gone")

    # One that does not answer is waited for, and the owner reads how to end that.
    async def told() -> bool:
        message = str((await attacker.condition("away", "HostedClusterDestroyed")).get("message"))
        return "127.0.0.1:1" in message and names.ANNOTATION_SKIP_INFRA_CLEANUP in message

    await eventually(told, "its owner is told")
    body = {"metadata": {"annotations": {names.ANNOTATION_SKIP_INFRA_CLEANUP: "true"}}}
    await attacker.client.patch(k.HOSTEDCLUSTERS, "away", attacker.namespace, body)
    await eventually(lambda: gone("away"), "the one that is away is gone")

    async def noted(name: str) -> bool:
        return any("Not cleaned up" in message and "vms" in message for message in await events(name))

    for name in ("refused", "away"):
        await eventually(partial(noted, name), f"an event tells what {name} left")


async def test_a_name_that_fits_no_label_does_not_hold_deletion_up(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess
) -> None:
    """Stored when there was no bound yet."""
    loose = copy.deepcopy(generate.crds())
    for crd in loose:
        if crd["spec"]["names"]["kind"] == "HostedCluster":
            spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            spec["infraID"]["maxLength"] = 253
    await install(admin, loose)
    # A kind is served as it was for a moment longer.
    await eventually(lambda: attacker.cluster("long", infraID="x" * 200), "a long name is stored")
    await install(admin)

    async def told() -> bool:
        return "infraID" in str((await attacker.condition("long", "ValidConfiguration")).get("message"))

    await eventually(told, "its owner is told")
    await attacker.client.delete(k.HOSTEDCLUSTERS, "long", attacker.namespace)

    async def gone() -> bool:
        return await attacker.client.get_or_none(k.HOSTEDCLUSTERS, "long", attacker.namespace) is None

    await eventually(gone, "it is gone")
