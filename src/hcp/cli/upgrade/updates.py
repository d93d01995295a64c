"""Which release `--to` means: one that the cluster's channel offers, as its status lists them."""

from __future__ import annotations

from typing import Any

from hcp import graph
from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.shared import health
from hcp.errors import HcpError

Object = dict[str, Any]
LATEST = "latest"


def chosen(call: Call, cluster: Object) -> str:
    """The image, empty without --to; HcpError where the channel offers nothing that fits."""
    wanted = call.text("to")
    if not wanted:
        if call.switch("allow-not-recommended"):
            raise UsageError("--allow-not-recommended is for --to", hint="name a version, or latest, with --to")
        return ""
    if call.text("release-image"):
        raise UsageError("--to and --release-image both say where to go", hint="give one of them")
    return release(cluster, wanted, risky=call.switch("allow-not-recommended"))


def release(cluster: Object, wanted: str, *, risky: bool) -> str:
    """Pure: out of the status."""
    name = cluster["metadata"]["name"]
    now = str(at(cluster, "status.version.desired.version") or "")
    here = str(at(cluster, "status.version.desired.image") or "")
    if wanted not in (LATEST, now):
        graph.Version.parse(wanted)
    elif wanted == now and here:
        return here
    _check_channel(cluster, name)
    safe: list[Object] = at(cluster, "status.version.availableUpdates") or []
    listed = at(cluster, "status.version.conditionalUpdates") or []
    held = {str(one["release"]["version"]): one for one in listed}
    offered = {str(one["version"]): str(one["image"]) for one in safe}
    allowed = {**offered, **({version: str(one["release"]["image"]) for version, one in held.items()} if risky else {})}
    if wanted == LATEST:
        if allowed:
            return allowed[max(allowed, key=graph.order)]
        if held:
            raise HcpError(
                f"{name} at {now} can only move to versions with known risks",
                cause=_risks(held[max(held, key=graph.order)]),
                hint="--allow-not-recommended takes them nevertheless",
            )
        if here:
            return here
        raise HcpError(f"{name} has no version yet", hint="wait until it is there: hcp wait cluster")
    if wanted in allowed:
        return allowed[wanted]
    if wanted in held:
        raise HcpError(
            f"{wanted} is not recommended for {name}",
            cause=_risks(held[wanted]),
            hint="--allow-not-recommended moves there nevertheless",
        )
    channel = at(cluster, "spec.channel")
    raise HcpError(
        f'the channel "{channel}" offers no update of {name} from {now} to {wanted}',
        cause=f"it offers: {', '.join(sorted([*offered, *held], key=graph.order, reverse=True)) or 'none'}",
        hint="take one of these, follow another channel (spec.channel), or name a release with --release-image",
    )


def _check_channel(cluster: Object, name: str) -> None:
    if not at(cluster, "spec.channel"):
        patch = f"kubectl patch hostedcluster {name} -n {cluster['metadata'].get('namespace')} --type merge -p "
        channel = """'{"spec":{"channel":"stable-1.36"}}'"""
        raise HcpError(
            f"{name} follows no channel, so nothing is known about updates",
            hint=f"set one: {patch}{channel}, or name a release with --release-image",
        )
    told = health.condition(cluster, c.CLUSTER_VERSION_RETRIEVED_UPDATES)
    if told is None:
        raise HcpError(
            f"the updates of {name} were not looked up yet",
            hint="try again in a moment; the condition ClusterVersionRetrievedUpdates tells how it goes",
        )
    if told.get("status") != "True":
        raise HcpError(f"the updates of {name} are not known", cause=str(told.get("message") or told.get("reason")))


def _risks(update: Object) -> str:
    return "; ".join(f"{risk.get('name')}: {risk.get('message')}" for risk in update.get("risks") or [])
