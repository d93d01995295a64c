"""Making several components at a time: what may start beside what is running, and the threads that do it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hcp.payload.component import Component


@dataclass(frozen=True)
class Slots:
    """How much may be made at the same time. Compilers take every core and gigabytes; the rest waits for servers."""

    compiling: int = 1
    others: int = 1


def startable(
    waiting: Sequence[Component], running: Collection[Component], made: Collection[str], slots: Slots
) -> list[Component]:
    """What to start now, in the order of `waiting`: components whose parts are all made, or were there before."""
    absent = {component.name for component in (*waiting, *running)} - set(made)
    free = {
        True: slots.compiling - sum(component.compiles for component in running),
        False: slots.others - sum(not component.compiles for component in running),
    }
    chosen = []
    for component in waiting:
        if free[component.compiles] > 0 and not absent.intersection(component.deps):
            free[component.compiles] -= 1
            chosen.append(component)
    return chosen


def make_all(
    components: Sequence[Component],
    make: Callable[[Component, float], None],
    slots: Callable[[], Slots],
    stop: Callable[[], None],
) -> None:
    """Makes all of them, dependencies first. `make` is given the moment since when it could have been made.

    After an error nothing new begins, `stop` ends what runs, and the first error is raised. The threads are daemons:
    when the process is told to end, nobody waits for a compiler.
    """
    done: queue.SimpleQueue[tuple[Component, BaseException | None]] = queue.SimpleQueue()
    waiting, running = list(components), set[str]()
    by_name: Mapping[str, Component] = {component.name: component for component in components}
    made: dict[str, float] = {}
    began = time.time()
    failure: BaseException | None = None

    def work(component: Component, since: float) -> None:
        try:
            make(component, since)
        except BaseException as error:  # the thread that waits raises it
            done.put((component, error))
        else:
            done.put((component, None))

    try:
        while waiting or running:
            if failure is None:
                for component in startable(waiting, [by_name[name] for name in running], made, slots()):
                    waiting.remove(component)
                    running.add(component.name)
                    since = max([began, *(made[dep] for dep in component.deps if dep in made)])
                    threading.Thread(target=work, args=(component, since), daemon=True).start()
            elif not running:
                break
            component, error = done.get()
            running.discard(component.name)
            made[component.name] = time.time()
            if error is not None and failure is None:
                failure = error
                stop()
    except BaseException:
        stop()
        raise
    if failure is not None:
        raise failure
