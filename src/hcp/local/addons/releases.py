"""The operator's image and the releases hosted clusters are made of, in the cluster's registry."""

from __future__ import annotations

from pathlib import Path

from hcp.local.addons.applying import digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references

OPERATOR = "image-hcp"


async def bring_up(ctx: Context) -> bool:
    """Says whether anything had to be done."""
    minors = ctx.wish.releases_for(ctx.spec.profile)
    names = [OPERATOR, *(f"release-{minor}" for minor in minors)]
    artifacts = await ctx.ensure(with_parts(names))
    ctx.lap("releases built")
    pushed = {name: path for name, path in artifacts.items() if is_image(path)}
    digest = digest_of([references(pushed)])
    if ctx.done("releases", digest):
        return False
    sent = await push(ctx.layout, pushed.values(), ctx.say)
    ctx.lap("releases pushed")
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB: the operator and releases {', '.join(minors)}")
    ctx.remember("releases", digest)
    return True


def with_parts(names: list[str]) -> list[str]:
    """The components themselves and the images they refer to."""
    from hcp.payload.registry import default_registry

    registry = default_registry()
    found = dict.fromkeys(names)
    for name in names:
        found.update(dict.fromkeys(dep for dep in registry.get(name).deps if _may_be_image(dep)))
    return list(found)


def _may_be_image(name: str) -> bool:
    return name.startswith(("image-", "node-disk-"))


def is_image(artifact: Path) -> bool:
    return (artifact / "image" / "index.json").is_file()
