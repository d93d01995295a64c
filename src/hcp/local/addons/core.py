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


async def node(ctx: Context, client: Client) -> bool:
    """Its node is Ready, and all is there that needs no image: kinds, rights, what the cluster says about itself.

    From then on pods start, and what is installed beside the add-ons finds out where it is. Says whether anything had
    to be done.
    """
    wanted = ground(ctx)
    digest = digest_of(wanted)
    if ctx.done("ground", digest) and await waiting.all_ready(client, ctx.spec, []):
        return False
    await apply_all(client, wanted)
    await waiting.label_node(client, ctx.spec)
    ctx.lap("node registered")
    await waiting.node_ready(client, first(ctx.spec))
    ctx.say("  the node is Ready")
    ctx.lap("node ready")
    ctx.remember("ground", digest)
    return True


async def bring_up(ctx: Context, client: Client) -> bool:
    """The add-ons. Says whether anything had to be done."""
    images = await ctx.ensure(parts.IMAGES)
    ctx.lap("add-ons built")
    wanted = objects(ctx, references(images))
    digest = digest_of([*base.objects(), *wanted])
    if ctx.done("core", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    await _install(ctx, client, wanted, images)
    ctx.remember("core", digest)
    ctx.say(f"Usable now: pods, Services, volumes and Routes at {ctx.spec.server}")
    return True


async def _install(ctx: Context, client: Client, wanted: list[Object], images: dict[str, Path]) -> None:
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    ctx.lap("add-ons pushed")
    await apply_all(client, [*base.objects(), *wanted])
    await waiting.label_node(client, ctx.spec)
    ctx.lap("add-ons applied")
    await waiting.wait_ready(client, wanted, ctx.say)
    ctx.lap("add-ons ready")


def ground(ctx: Context) -> list[Object]:
    """All that names no image."""
    plan = ctx.spec.addresses
    registry_ca = (ctx.layout.pki / "registry-ca.crt").read_text()
    return [
        *base.objects(),
        *config.definitions(),
        *router.definitions(),
        *config.objects(plan, registry_ca),
        *(obj for obj in router.objects(plan, "") if obj["kind"] not in waiting.WORKLOADS),
    ]


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
