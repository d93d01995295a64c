"""`backup schedule`: what it needs is looked at before anything is made."""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.backup import collecting, jobs
from hcp.backup.jobs import CLAIM, Plan
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.grammar import refuse
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import DEPLOYMENTS, PVCS, SCCS, SECRETS, SERVICEACCOUNTS
from hcp.runtime import schedule

Object = dict[str, Any]


async def run(call: Call) -> int:
    namespace, name, home = call.text("namespace"), call.arg("NAME"), call.text("operator-namespace")
    hosted = names.control_plane_namespace(namespace, name)
    async with connect(call) as client:
        if call.switch("remove"):
            there = await jobs.end(client, f"{home}/{jobs.job_name(hosted)}", namespace, hosted)
            print(f"hosted cluster {namespace}/{name} is {'no longer' if there else 'not'} backed up by schedule")
            return 0
        _check(call)
        cluster = await find_cluster(client, call.prog, namespace, name)
        collecting.refuse_what_cannot_be_kept(cluster)
        image, pull_secrets = await _image(client, call, home)
        plan = Plan(
            cluster,
            image,
            call.text("cron"),
            call.text("store"),
            call.number("keep"),
            call.text("secret"),
            await _lock(client, call, home),
            home,
            pull_secrets,
            _words(call),
            None if await client.has(SCCS) else Plan.group,
        )
        await jobs.begin(client, plan)
    print(f"CronJob {home}/{plan.name} backs up hosted cluster {namespace}/{name} at {plan.when!r}, UTC")
    return 0


def _check(call: Call) -> None:
    for flag in ("store", "secret"):
        if not call.text(flag):
            raise UsageError(f'required flag(s) "{flag}" not set', hint=f"{call.prog} backup schedule --help")
    if not call.text("store").startswith(("s3://", CLAIM)):
        raise refuse(
            "store", call.text("store"), "a pod has no folder that outlives it", "s3://BUCKET/PREFIX or claim:NAME"
        )
    if call.number("keep") < 0:
        raise refuse("keep", str(call.number("keep")), "a number of backups cannot be negative", "0 or more")
    schedule.parse(call.text("cron"))


def _words(call: Call) -> list[str]:
    if call.text("store").startswith(CLAIM):
        return []
    endpoint = call.text("s3-endpoint")
    return [f"--s3-region={call.text('s3-region')}", *([f"--s3-endpoint={endpoint}"] if endpoint else [])]


async def _image(client: Client, call: Call, home: str) -> tuple[str, list[Object]]:
    """The operator's: its pods can pull it already."""
    found = await client.get_or_none(DEPLOYMENTS, "operator", home)
    pod = ((found or {}).get("spec") or {}).get("template", {}).get("spec", {})
    image = call.text("image") or next((one["image"] for one in pod.get("containers") or []), "")
    if not image:
        raise HcpError(
            f"there is no operator in namespace {home}", hint="--operator-namespace says where it is, or give --image"
        )
    account = str(pod.get("serviceAccountName") or "")
    return image, await _pull_secrets(client, account, home)


async def _pull_secrets(client: Client, account: str, home: str) -> list[Object]:
    live = await client.get_or_none(SERVICEACCOUNTS, account, home) if account else None
    return [{"name": one["name"]} for one in (live or {}).get("imagePullSecrets") or []]


async def _lock(client: Client, call: Call, home: str) -> str:
    """Whether the Secret holds a passphrase or a key; what is missing is told now and not in the night."""
    name, store = call.text("secret"), call.text("store")
    live = await client.get_or_none(SECRETS, name, home)
    data = (live or {}).get("data") or {}
    lock = next((one for one in ("passphrase", "key") if data.get(one)), "")
    if not lock:
        raise HcpError(
            f"Secret {home}/{name} with key passphrase or key does not exist",
            hint=f"kubectl create secret generic {name} -n {home} --from-file=passphrase=FILE",
        )
    if store.startswith("s3://") and not (data.get("AWS_ACCESS_KEY_ID") and data.get("AWS_SECRET_ACCESS_KEY")):
        raise HcpError(f"Secret {home}/{name} lacks AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY")
    claim = store.removeprefix(CLAIM) if store.startswith(CLAIM) else ""
    if claim and await client.get_or_none(PVCS, claim, home) is None:
        raise HcpError(f"PersistentVolumeClaim {home}/{claim} does not exist", hint="make it first")
    return lock
