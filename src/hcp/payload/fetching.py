"""Official builds before anything is built: what can be had, from whom, and what is left to build and why."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from hcp.payload import download, gozip, official_images, reachability
from hcp.payload.component import Component, Download
from hcp.payload.context import BuildContext
from hcp.payload.mirrors import configured
from hcp.payload.official import ModuleFiles, OfficialImage
from hcp.payload.registry import Registry, default_registry

_ITEMS_AT_ONCE = 3


def fetch_all(component: Component, ctx: BuildContext) -> None:
    """Fetches all that makes a component; raises HcpError when anything is not right.

    Some of its files at a time: while one is checked and unpacked, the next has the link.
    """
    jobs = []
    for number, item in enumerate(component.downloads):
        scratch = ctx.scratch / f"item-{number}"
        scratch.mkdir()
        jobs.append(partial(_fetch, item, replace(ctx, scratch=scratch)))
    at_once(jobs, _ITEMS_AT_ONCE)
    if component.finish_download is not None:
        component.finish_download(ctx)


def _fetch(item: Download | OfficialImage | ModuleFiles, ctx: BuildContext) -> None:
    if isinstance(item, Download):
        download.fetch(item, ctx)
    elif isinstance(item, OfficialImage):
        official_images.fetch(item, ctx)
    else:
        gozip.fetch(item, ctx)


def at_once(jobs: Sequence[Callable[[], None]], workers: int) -> None:
    """Does all of them, so many at a time. After an error none is begun any more; it is raised when all have ended.

    The threads are daemons: when the process is told to end, nobody waits for a server.
    """
    waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    errors: list[BaseException] = []
    for job in jobs:
        waiting.put(job)

    def work() -> None:
        while not errors:
            try:
                waiting.get_nowait()()
            except queue.Empty:
                return
            except BaseException as error:  # the thread that waits raises it
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def first_to_have(
    registry: Registry, wanted: Iterable[str], missing: Collection[str], passed: Collection[str]
) -> list[Component]:
    """The missing components that have an official build, seen from what is wanted: nothing below them is needed then.

    `passed` are those that could not be had; what they are made of is looked at instead.
    """
    found: dict[str, Component] = {}
    seen: set[str] = set()
    pending = list(wanted)
    while pending:
        name = pending.pop(0)
        if name in seen or name not in missing:
            continue
        seen.add(name)
        component = registry.get(name)
        if component.downloads and name not in passed:
            found[name] = component
        else:
            pending.extend(component.deps)
    return list(found.values())


def places(component: Component) -> dict[str, str]:
    """Server → URL to try it with."""
    urls = [configured().url(item.url) for item in component.downloads]
    return {reachability.base(url): url for url in urls}


def way_out(components: Sequence[Component], say: Callable[[str], None]) -> set[str]:
    """Asks every publisher at once and says in one line who cannot be reached. Gives the servers that can."""
    asked = {server: url for component in components for server, url in places(component).items()}
    troubles = reachability.probe(asked.values())
    lost = {server: trouble for server, trouble in troubles.items() if trouble}
    if lost:
        names = ", ".join(sorted(server.partition("://")[2] for server in lost))
        reasons = "; ".join(sorted(set(lost.values())))
        say(f"No way out to {names} ({reasons}): what they offer is built from source instead")
    return {server for server, trouble in troubles.items() if not trouble}


def anything_reachable(say: Callable[[str], None]) -> bool:
    """Whether a run of several commands should look for official builds at all; those of publishers, not of sources."""
    registry = default_registry()
    publishers = [
        replace(component, downloads=tuple(item for item in component.downloads if not isinstance(item, ModuleFiles)))
        for component in map(registry.get, registry.usual())
    ]
    return bool(way_out(publishers, say))
