"""`destroy cluster kubevirt`: delete, wait until it is gone, then remove what the command line had made."""

from __future__ import annotations

from hcp.api import names
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.waiting import wait_gone
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import CONFIGMAPS, HOSTEDCLUSTERS, SECRETS

# Secrets of rendered manifests carry no infrastructure label; these are the names the command line gives.
SECRET_SUFFIXES = ("pull-secret", "ssh-key", "infra-credentials", "etcd-encryption-key")
REQUIRED = "required inputs are missing: infrastructure ID is required"


async def run(call: Call) -> int:
    namespace, name = call.text("namespace"), call.text("name")
    where = f"{namespace}/{name}"
    async with connect(call) as client:
        cluster = await client.get_or_none(HOSTEDCLUSTERS, name, namespace)
        infra_id = call.text("infra-id")
        if cluster is not None:
            infra_id = str(cluster["spec"].get("infraID") or infra_id)
        if not infra_id:
            raise HcpError(
                REQUIRED,
                cause=f"there is no hosted cluster {where} to read it from",
                hint="--infra-id names it: the label hypershift.openshift.io/auto-created-for-infra of its Secrets",
                exit_code=4,
            )
        if cluster is None:
            note(f"hosted cluster {where} is not there; removing what is left of it")
        else:
            await _delete(client, call, namespace, name)
            await wait_gone(
                client,
                "hosted cluster",
                namespace,
                name,
                max(call.seconds("cluster-grace-period"), 0.001),
                hint="nothing was forced: run the command again to go on waiting; "
                f"{call.prog} status {name} -n {namespace} shows what holds it",
                again="the deletion goes on by itself; run the command again to wait for it and to remove its Secrets",
                destroyed_is_enough=True,
            )
        await _clean(client, namespace, name, infra_id)
        note(f"destroyed hosted cluster {where} with infrastructure id {infra_id}")
    return 0


async def _delete(client: Client, call: Call, namespace: str, name: str) -> None:
    if call.switch("destroy-cloud-resources"):
        body = {"metadata": {"annotations": {names.ANNOTATION_CLEANUP_CLOUD: "true"}}}
        try:
            await client.patch(HOSTEDCLUSTERS, name, namespace, body, manager=names.CLI_FIELD_MANAGER)
        except NotFound:
            return
    await client.delete(HOSTEDCLUSTERS, name, namespace, missing_ok=True)
    note(f"deleting hosted cluster {namespace}/{name}")


async def _clean(client: Client, namespace: str, name: str, infra_id: str) -> None:
    """Secrets made for the cluster, and the shared CA bundle if it was made for it and nobody else refers to it."""
    await client.delete_collection(SECRETS, namespace, labels=f"{names.LABEL_AUTO_CREATED}={infra_id}")
    for suffix in SECRET_SUFFIXES:
        secret = await client.get_or_none(SECRETS, f"{name}-{suffix}", namespace)
        labels = (secret or {}).get("metadata", {}).get("labels") or {}
        if labels.get(names.LABEL_SAFE_TO_DELETE) == "true" and labels.get(names.LABEL_AUTO_CREATED) in (
            None,
            infra_id,
        ):
            await client.delete(SECRETS, f"{name}-{suffix}", namespace, missing_ok=True)
    bundle = await client.get_or_none(CONFIGMAPS, names.USER_CA_BUNDLE, namespace)
    owner = ((bundle or {}).get("metadata", {}).get("labels") or {}).get(names.LABEL_AUTO_CREATED)
    if owner == infra_id:
        try:
            others = await client.list(HOSTEDCLUSTERS, namespace)
        except NotFound:
            others = []
        if not any((o["spec"].get("additionalTrustBundle") or {}).get("name") for o in others):
            await client.delete(CONFIGMAPS, names.USER_CA_BUNDLE, namespace, missing_ok=True)
