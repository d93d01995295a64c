"""Making components: the cache first, then --from, then official builds, then a build."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload import estimates, fetching, go_cache, readable, timeline
from hcp.payload.children import Children
from hcp.payload.cleaning import human_size
from hcp.payload.component import Component
from hcp.payload.context import BuildContext
from hcp.payload.from_directory import holds, take_from
from hcp.payload.gotool import available_memory
from hcp.payload.linking import check
from hcp.payload.parallel import Slots, make_all
from hcp.payload.progress import Progress
from hcp.payload.registry import Registry, default_registry
from hcp.payload.store import Store

_SPACE = 4 << 30
_DOWNLOADS_AT_ONCE = 4
_MEMORY_FOR_TWO = 8 << 30  # the largest packages and links of two compilers at once
_OFFICIAL = "official build downloaded"


class Engine:
    """One run: makes what is asked for and is not there yet.

    Go keeps every core busy only most of the time: it waits for modules first and links with one core at the end. So a
    second one is compiled beside it where memory allows, and what waits for servers runs beside both.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        store: Store | None = None,
        progress: Progress | None = None,
        *,
        from_dir: Path | None = None,
        use_downloads: bool = False,
    ) -> None:
        self.registry = registry or default_registry()
        self.store = store or Store()
        self.progress = progress or Progress()
        self.from_dir = from_dir
        self.use_downloads = use_downloads
        self.made: list[timeline.Span] = []
        self._children: list[Children] = []
        self._warm = go_cache.compiled(self.store).exists()

    def find(self, name: str) -> Path | None:
        return self.store.find(name, self.registry.key(name))

    def ensure(self, names: Iterable[str]) -> dict[str, Path]:
        """Gives the finished directory of each named component.

        What a finished component was made from need not be there: an imported image does not need its binaries.
        """
        wanted = list(dict.fromkeys(names))
        missing = self._missing(wanted)
        if not missing:
            return {name: self._present(name) for name in wanted}
        with readable.by_everybody(), self.progress:
            self._get_or_make(wanted, missing)
            go_cache.drop_modules(self.store)
            go_cache.drop_compiled(self.store)
        return {name: self._present(name) for name in wanted}

    def _get_or_make(self, wanted: list[str], missing: list[Component]) -> None:
        with self.store.lock("go-modules", shared=True):
            self._need_space()
            if self.use_downloads:
                self._fetch(wanted, {component.name for component in missing})
                missing = self._missing(wanted)
            self._plan(missing)
            make_all(missing, self._make, self._slots, self.stop)

    def _plan(self, missing: list[Component]) -> None:
        names = [component.name for component in missing]
        self.progress.plan(names, estimates.seconds(names, self.store))

    def _fetch(self, wanted: list[str], missing: set[str]) -> None:
        """Official builds, from the top: below one that was had nothing is needed."""
        passed: dict[str, str] = {}
        """What has to be built, and why, where that is not said elsewhere."""
        while candidates := fetching.first_to_have(self.registry, wanted, missing, passed):
            fit = [component for component in candidates if not self._unfit(component, passed)]
            reachable = fetching.way_out(fit, self.progress.line)
            ready = [component for component in fit if fetching.places(component).keys() <= reachable]
            self.progress.plan([component.name for component in ready], verb="download")
            alone = [replace(component, deps=(), compiles=False) for component in ready]
            make_all(alone, self._get, lambda: Slots(compiling=0, others=_DOWNLOADS_AT_ONCE), self.stop)
            missing = {component.name for component in self._missing(wanted)}
            passed.update({component.name: "" for component in fit if component.name in missing})
        for name in missing - passed.keys():
            self._unfit(self.registry.get(name), passed)
        for reason in sorted(set(filter(None, passed.values()))):
            names = sorted(name for name in missing if passed.get(name) == reason)
            self.progress.line(f"To be built: {', '.join(names)}; {reason}")

    def _unfit(self, component: Component, passed: dict[str, str]) -> bool:
        if self.from_dir is not None and holds(self.from_dir, component):
            passed[component.name] = ""
        elif reason := component.unfit():
            passed[component.name] = reason
        return component.name in passed

    def _get(self, component: Component, since: float) -> None:
        """Downloads one component; when that fails it is said, and the component is left to be built."""
        key = self.registry.key(component.name)
        with self.store.lock(f"{component.name}-{key}"):
            if self.store.find(component.name, key) is not None:
                self.progress.done(component.name, "made by another run")
                return
            try:
                self._make_locked(component, key, since, self._download)
            except HcpError as error:
                self.progress.dropped(component.name)
                self.progress.line(f"{component.name}: not downloaded ({_one_line(error)}), building it instead")

    def _download(self, component: Component, ctx: BuildContext) -> str:
        self.progress.start(component.name, f"version {component.version} is downloaded")
        fetching.fetch_all(component, ctx)
        return _OFFICIAL

    def _slots(self) -> Slots:
        """The very first compilation is alone: it makes the standard library for all others."""
        alone = not self._warm or available_memory() < _MEMORY_FOR_TWO
        return Slots(compiling=1 if alone else 2, others=2)

    def stop(self) -> None:
        """Ends the programs that build; from any thread. What they were making is not made."""
        for children in list(self._children):
            children.stop()

    def _need_space(self) -> None:
        """Stops before a build that cannot end well; the largest component needs about this much on its way."""
        free = shutil.disk_usage(self.store.root).free
        if free < _SPACE:
            raise HcpError(
                f"The disk of {self.store.root} has only {human_size(free)} left, and building takes up to "
                f"{human_size(_SPACE)}",
                hint="Free some space (`hcp payload clean` removes leftovers), or point XDG_CACHE_HOME elsewhere.",
            )

    def _missing(self, wanted: list[str]) -> list[Component]:
        """What has to be made, dependencies first. Below a finished component nothing is looked at."""
        needed: set[str] = set()
        pending = list(wanted)
        for name in wanted:
            self.registry.get(name)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            path, damage = self.store.inspect(name, self.registry.key(name))
            if path is not None:
                continue
            if damage is not None:
                self.progress.line(f"{name}: the cached copy is damaged ({damage}), making it again")
            needed.add(name)
            pending.extend(self.registry.get(name).deps)
        return [component for component in self.registry.order(wanted) if component.name in needed]

    def _present(self, name: str) -> Path:
        path = self.find(name)
        if path is None:
            raise HcpError(f"The payload {name} vanished from the cache while it was being used", hint="Try again.")
        return path

    def _make(self, component: Component, since: float) -> None:
        key = self.registry.key(component.name)
        lock = f"{component.name}-{key}"
        with self.store.lock(lock, wait=False) as mine:
            if mine:
                self._make_locked(component, key, since, self._fill)
                return
        self.progress.start(component.name, "another run is making it, waiting")
        with self.store.lock(lock):
            self._make_locked(component, key, since, self._fill)

    def _make_locked(
        self, component: Component, key: str, since: float, fill: Callable[[Component, BuildContext], str]
    ) -> None:
        name = component.name
        if self.store.find(name, key) is not None:
            self.progress.done(name, "made by another run")
            return
        self.store.discard(name, key)
        work = self.store.work(name, key)
        began, idle = time.time(), timeline.idle_seconds()
        ctx = self._context(component, key, work)
        with self.store.lock("go-compiling", shared=True):
            how = fill(component, ctx)
        absent = [path for path in component.outputs if not (ctx.out / path).exists()]
        if absent:
            raise HcpError(f"The build of {name} ended without {', '.join(absent)}", hint=f"See the log {ctx.log}")
        check.demand(name, ctx.out, component.runs_in, official=how == _OFFICIAL)
        facts = {"version": component.version, "origin": how, "seconds": round(time.time() - began, 1)}
        self.store.finish(ctx.out, name, key, facts)
        shutil.rmtree(work, ignore_errors=True)
        self._warm = self._warm or component.compiles
        cpu, idle = ctx.children.cpu, timeline.idle_seconds() - idle
        span = timeline.Span(name, how, began, time.time(), began - since, cpu, idle, os.cpu_count() or 1)
        self.made.append(span)
        timeline.keep(self.store.root, span)
        go_cache.drop_compiled(self.store, above=go_cache.compiled_at_most(self.store))
        self.progress.done(name, how)

    def _context(self, component: Component, key: str, work: Path) -> BuildContext:
        out, scratch = work / "out", work / "scratch"
        for folder in (out, scratch):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        log = self.store.log(component.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        deps = {dep: self._present(dep) for dep in component.deps}
        say, children = partial(self.progress.detail, component.name), Children()
        self._children.append(children)
        return BuildContext(component, key, deps, out, scratch, self.store.root, log, say, children)

    def _fill(self, component: Component, ctx: BuildContext) -> str:
        """Tries the sources in their order and says in a word which one it was."""
        if self.from_dir is not None:
            if take_from(self.from_dir, component, ctx.out):
                self.progress.start(component.name, f"taking it from {self.from_dir}")
                return f"taken from {self.from_dir}"
            self.progress.line(f"{component.name}: {self.from_dir} does not hold all of it, looking further")
        self.progress.start(component.name, f"version {component.version} is {component.how}")
        component.build(ctx)
        return component.how


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def ensure(
    names: Iterable[str],
    *,
    progress: Progress | None = None,
    from_dir: Path | None = None,
    build: bool = False,
) -> dict[str, Path]:
    """Makes sure that components are in the cache and gives their directories. Blocks; `ensure_async` does not.

    With `build` nothing is downloaded that can be built.
    """
    return Engine(progress=progress, from_dir=from_dir, use_downloads=not build).ensure(names)


def find(name: str) -> Path | None:
    """The directory of a component if it is in the cache and undamaged."""
    return Engine().find(name)
