"""The add-ons every cluster with a node has: DNS, NetworkPolicy, storage, Routes, and what it says about itself."""

from __future__ import annotations

from pathlib import Path

from hcp.api.manifests import Object
from hcp.kube import Client
from hcp.local.addons import base, config, dns, policy, router, storage, waiting
from hcp.local.addons.applying import apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references
from hcp.local.host.resolvers import machine_nameservers
from hcp.local.network.addresses import IPV6, Addresses
from hcp.local.state import parts
from hcp.local.state.nodes import first


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    images = await ctx.ensure(parts.IMAGES)
    ctx.lap("add-ons built")
    wanted = objects(ctx, references(images))
    digest = digest_of([*base.objects(), *wanted])
    if ctx.done("core", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    await _install(ctx, client, wanted, images)
    ctx.remember("core", digest)
    return True


async def _install(ctx: Context, client: Client, wanted: list[Object], images: dict[str, Path]) -> None:
    await apply_all(client, base.objects())
    await waiting.label_node(client, ctx.spec)
    ctx.lap("node registered")
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    ctx.lap("add-ons pushed")
    await apply_all(client, wanted)
    ctx.lap("add-ons applied")
    await waiting.node_ready(client, first(ctx.spec))
    ctx.say("  the node is Ready")
    ctx.lap("node ready")
    await waiting.wait_ready(client, wanted, ctx.say)
    ctx.lap("add-ons ready")


def objects(ctx: Context, refs: dict[str, str]) -> list[Object]:
    plan = ctx.spec.addresses
    registry_ca = (ctx.layout.pki / "registry-ca.crt").read_text()
    found = [
        *config.definitions(),
        *router.definitions(),
        *config.objects(plan, registry_ca),
        *policy.objects(plan, refs["kube-router"]),
        *dns.objects(plan, refs["coredns"], forward=_asks_outside(plan)),
        *storage.objects(refs["local-path-provisioner"], refs["local-path-helper"], default=not ctx.spec.has_storage),
        *router.objects(plan, refs["router"]),
    ]
    for obj in found:
        if obj["kind"] in waiting.WORKLOADS:
            _label_version(obj)
    return found


def _asks_outside(plan: Addresses) -> bool:
    """Resolvers of the machine are known by IPv4 addresses, which pods without IPv4 cannot reach."""
    return plan.family != IPV6 and bool(machine_nameservers())


# Workload → payload component whose version it shows.
_VERSIONS = {
    "coredns": "coredns",
    "kube-router": "kube-router",
    "local-path-provisioner": "local-path-provisioner",
    "router-default": "image-router",
}


def _label_version(workload: Object) -> None:
    """`status` reads it; only on the workload, since a label of its pods would restart them."""
    component = _VERSIONS[workload["metadata"]["name"]]
    workload["metadata"].setdefault("labels", {})
    workload["metadata"]["labels"] = {
        **workload["metadata"]["labels"],
        "app.kubernetes.io/version": parts.version(component),
    }
