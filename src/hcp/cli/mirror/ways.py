"""The three ways: registry to registry, registry to disk, disk to registry."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note, warn
from hcp.cli.mirror import access
from hcp.cli.mirror.telling import Telling
from hcp.mirror import history, outcome
from hcp.mirror.archive_reading import at, scan
from hcp.mirror.built import plan_exported
from hcp.mirror.collect import GIB, StoreDestination, write_archives
from hcp.mirror.config import ImageSet
from hcp.mirror.copy import Copied, Copier, Destination, RegistryDestination
from hcp.mirror.plan import Item, Plan
from hcp.mirror.run import Access, load, plan_images, shortened
from hcp.mirror.sources import Sources
from hcp.mirror.store import BlobStore
from hcp.mirror.workspace import DiskError, Workspace, cache_taken, disk_errors, folder
from hcp.oci.image import Image
from hcp.publish.target import Target


async def to_registry(call: Call) -> int:
    access.checked(call)
    (images, _), target = access.image_set(call), Target.parse(call.arg("TARGET"))
    workspace = Workspace(folder(call.text("workspace"), "--workspace"))
    with workspace.taken(), disk_errors(workspace.root), Telling(workspace) as telling:
        async with access.sources(call) as sources, access.pusher(call, target, telling.sent) as pusher:
            plan = shortened(await made_plan(call, images, sources, workspace, telling), target, _nested(call))
            to = RegistryDestination(pusher, target, lambda item: load(item, sources, workspace.made))
            copier = _copier(call, to, telling)
            if call.switch("dry-run"):
                return await _dry(copier, plan, target, workspace)
            copied = await copier.run(plan)
        return _finish(plan, target, workspace, copied, telling, pusher.sent_bytes)


async def to_disk(call: Call) -> int:
    access.checked(call)
    images, config = access.image_set(call)
    since = history.day(call.text("since")) if call.text("since") else ""
    workspace = Workspace(folder(call.arg("TARGET"), "the target"))
    cache = access.cache(call)
    with workspace.taken(), disk_errors(workspace.root), cache_taken(cache), Telling(workspace) as telling:
        async with access.sources(call) as sources:
            plan = await made_plan(call, images, sources, workspace, telling)
            store = BlobStore(cache, parallel=call.number("parallel-images") * call.number("parallel-layers"))
            to = StoreDestination(store, lambda item: load(item, sources, workspace.made))
            copier = _copier(call, to, telling)
            if call.switch("dry-run"):
                return await _dry(copier, plan, None, workspace)
            copied = await copier.run(plan)
        telling.show(
            f"{copied.done} of {len(plan.items)} images are here, {store.fetched_bytes >> 20} MiB were fetched"
        )
        written = await asyncio.to_thread(
            write_archives,
            workspace,
            to,
            plan,
            copied,
            config,
            most=images.archive_size * GIB,
            strict=call.switch("strict-archive"),
            since=since,
        )
        workspace.remember(plan)
    for path in written.archives:
        note(f"written: {path} ({path.stat().st_size >> 20} MiB)")
    if not written.archives:
        note("Nothing is new since the last archive; --since YYYY-MM-DD archives again what is newer than that day.")
    return problems(plan, workspace)


async def from_disk(call: Call) -> int:
    access.checked(call)
    target = Target.parse(call.arg("TARGET"))
    place = folder(call.text("from"), "--from")
    workspace = Workspace(place.parent if place.is_file() else place)
    found = await asyncio.to_thread(scan, at(place))
    plan = found.plan if found.described is not None else plan_exported(found)
    if call.text("config") and found.described is not None and access.image_set(call)[1] != found.described["config"]:
        warn("the archives were made with another image set configuration; what they hold is mirrored")
    plan = shortened(plan, target, _nested(call))
    with workspace.taken(), disk_errors(workspace.root), Telling(workspace) as telling:
        async with access.pusher(call, target, telling.sent) as pusher:

            async def opened(item: Item) -> Image:
                return await asyncio.to_thread(found.image, item.digest)

            for item in plan.items:
                pusher.know(await opened(item), target.repository(item.repository), sure=False)
            copier = _copier(call, RegistryDestination(pusher, target, opened), telling)
            if call.switch("dry-run"):
                return await _dry(copier, plan, target, workspace)
            copied = await copier.run(plan)
        return _finish(plan, target, workspace, copied, telling, pusher.sent_bytes)


async def made_plan(call: Call, images: ImageSet, sources: Sources, workspace: Workspace, telling: Telling) -> Plan:
    reach = Access(sources, access.graphs(call, sources), access.trust(call), telling.show)
    return await plan_images(
        images,
        reach,
        workspace.made,
        signatures=not call.values.get("remove-signatures", False),
        ignore_release_signatures=call.values.get("ignore-release-signature", True),
    )


def _copier(call: Call, to: Destination, telling: Telling) -> Copier:
    parallel, seconds = call.number("parallel-images"), call.seconds("image-timeout")
    return Copier(to, telling.step, parallel=parallel, seconds=seconds)


def _nested(call: Call) -> int:
    return call.number("max-nested-paths")


async def _dry(copier: Copier, plan: Plan, target: Target | None, workspace: Workspace) -> int:
    missing = await copier.missing(plan)
    workspace.write(workspace.dry_run / "mapping.txt", outcome.mapping(plan, target))
    workspace.write(workspace.dry_run / "missing.txt", outcome.mapping(plan, target, missing))
    where = target or "the cache"
    note(f"{len(plan.items)} images are asked for, {len(missing)} of them are missing in {where}: {workspace.dry_run}")
    return problems(plan, workspace)


def _finish(plan: Plan, target: Target, workspace: Workspace, copied: Copied, telling: Telling, sent_bytes: int) -> int:
    there = {(item.repository, item.tag) for item in (*copied.sent, *copied.present)}
    told = Plan(
        [item for item in plan.items if (item.repository, item.tag) in there],
        [one for one in plan.catalogs if (one.repository, one.tag) in there],
        plan.problems,
        plan.signatures,
    )
    files = outcome.write_resources(workspace, told, target)
    try:
        files.append(outcome.write_results(workspace, Path.cwd(), told, target))
    except DiskError as error:  # all is mirrored, and the files above say the same
        warn(str(error))
    workspace.remember(plan)
    telling.show(
        f"{copied.done} of {len(plan.items)} images are in {target}: {len(copied.present)} were there, "
        f"{len(copied.sent)} copied, {sent_bytes >> 20} MiB sent"
    )
    for path in files:
        note(f"written: {path}")
    return problems(plan, workspace)


def problems(plan: Plan, workspace: Workspace) -> int:
    if plan.problems:
        for problem in plan.problems:
            note(f"Error: {problem.sentence}")
            if problem.hint:
                note(f"Hint: {problem.hint}")
        path = outcome.write_errors(workspace, plan.problems)
        note(f"{len(plan.problems)} problems, the rest was done; they are in {path}")
    return plan.exit_code
