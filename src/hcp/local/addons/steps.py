"""The part of `up` that speaks to the API server: images, add-ons, waiting until they are ready.

Each step states the whole wish and applies it; running it again finds nothing to do.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hcp.kube import Client, load_config
from hcp.local import parts
from hcp.local import spec as specs
from hcp.local.addons import base, config, dns, policy, router, storage, waiting
from hcp.local.addons.images import push, references
from hcp.local.addons.objects import Object
from hcp.local.layout import Layout
from hcp.local.node_files import machine_nameservers
from hcp.local.spec import Spec
from hcp.payload import Progress

if TYPE_CHECKING:
    from hcp.local.up import Wish

Say = Callable[[str], None]
_AT_ONCE = 16


def bring_up(layout: Layout, spec: Spec, say: Say, lap: Callable[[str], None], wish: Wish) -> bool:
    """Everything above the processes. Says whether anything had to be done."""
    return asyncio.run(_Steps(layout, spec, say, lap, wish).run())


@dataclass
class _Steps:
    layout: Layout
    spec: Spec
    say: Say
    lap: Callable[[str], None]
    wish: Wish

    async def run(self) -> bool:
        async with Client(load_config(self.layout.kubeconfig), user_agent="hcp-local") as client:
            return await self._run(client)

    async def _run(self, client: Client) -> bool:
        images = await self._ensure(parts.images(self.spec))
        self.lap("images built")
        wanted = self._objects(references(images))
        digest = _digest(wanted)
        if self.spec.applied.startswith(digest) and await waiting.all_ready(client, self.spec, wanted):
            changed = False
        else:
            await self._core(client, wanted, images)
            changed = True
        if self.spec.profile == "kubevirt":
            from hcp.local.addons.virtualization import bring_up_virtualization

            changed = await bring_up_virtualization(self, client) or changed
        self.remember(digest)
        return changed

    async def _core(self, client: Client, wanted: list[Object], images: dict[str, Path]) -> None:
        await apply_all(client, base.objects())
        await waiting.label_node(client, self.spec)
        self.lap("node registered")
        sent = await push(self.layout, images.values(), self.say)
        self.lap("images pushed")
        if sent:
            self.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
        await apply_all(client, wanted)
        self.lap("add-ons applied")
        await waiting.node_ready(client, self.spec)
        self.say("  the node is Ready")
        self.lap("node ready")
        await waiting.wait_ready(client, wanted, self.say)
        self.lap("add-ons ready")

    def _objects(self, refs: dict[str, str]) -> list[Object]:
        plan = self.spec.addresses
        registry_ca = (self.layout.pki / "registry-ca.crt").read_text()
        return [
            *config.definitions(),
            *router.definitions(),
            *config.objects(plan, registry_ca),
            *policy.objects(plan, refs["kube-router"]),
            *dns.objects(plan, refs["coredns"], forward=bool(machine_nameservers())),
            *storage.objects(refs["local-path-provisioner"], refs["local-path-helper"]),
            *router.objects(plan, refs["router"]),
        ]

    async def _ensure(self, names: tuple[str, ...]) -> dict[str, Path]:
        found = await asyncio.to_thread(
            parts.ensure, names, Progress(), from_dir=self.wish.from_dir, download=self.wish.download
        )
        return dict(found.paths)

    def remember(self, digest: str) -> None:
        self.spec = replace(self.spec, applied=digest)
        specs.save(self.layout, self.spec)


def _digest(wanted: list[Object]) -> str:
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:20]


_FIRST = ("CustomResourceDefinition", "Namespace")


async def apply_all(client: Client, wanted: list[Object]) -> None:
    """Definitions and namespaces first, the rest at once."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(obj: Object) -> None:
        async with slots:
            await client.apply(obj, manager="hcp-local")

    first = [obj for obj in wanted if obj["kind"] in _FIRST]
    await asyncio.gather(*(one(obj) for obj in first))
    await waiting.definitions_served(client, [obj for obj in first if obj["kind"] == _FIRST[0]])
    await asyncio.gather(*(one(obj) for obj in wanted if obj["kind"] not in _FIRST))
