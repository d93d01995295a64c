"""`hcp local down`: nothing of the cluster stays on the machine; with --purge not even its data."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.lifecycle.plan import need_root
from hcp.local.state import spec as specs
from hcp.local.state.layout import NUMBERS_LOCK, Layout
from hcp.local.state.locks import exclusive
from hcp.local.state.nodes import joined
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control

Say = Callable[[str], None]


def down(name: str, *, purge: bool, say: Say) -> None:
    layout = Layout.of(name)
    if not layout.root.is_dir():
        raise _missing(name)
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{name}', waiting for it")):
        if [path.name for path in layout.root.iterdir()] == [layout.lock.name]:
            shutil.rmtree(layout.root)  # the command we waited for removed the cluster, waiting made its folder again
            raise _missing(name)
        spec = _spec(layout, purge)
        if spec is not None and spec.has_node:
            need_root(spec.profile)
        for node in joined(spec) if spec is not None else ():
            control.stop(node.layout(layout))
        was_up = control.stop(layout) or control.was_started(layout)
        if spec is not None and spec.has_node:
            from hcp.local.lifecycle.cleanup import clean_machine

            clean_machine(layout, spec)
        for one in [layout, *(node.layout(layout) for node in (joined(spec) if spec is not None else ()))]:
            for path in (one.supervisor, one.socket):
                path.unlink(missing_ok=True)
        if not was_up and not purge:
            raise HcpError(
                f"Cluster '{name}' is not up",
                hint=f"hcp local up --name {name} starts it; hcp local down --name {name} --purge removes its data.",
            )
        if purge:
            shutil.rmtree(layout.root)
    if purge:
        forget_root(layout.root.parent)


def forget_root(root: Path) -> None:
    """The folder of all clusters goes with the last of them, and the folder it is in when that is ours alone."""
    if any(root.glob("*/")):
        return
    with exclusive(root / NUMBERS_LOCK):
        if any(root.glob("*/")):
            return
        (root / NUMBERS_LOCK).unlink()
    with contextlib.suppress(OSError):  # a cluster is being made at this moment, or somebody put something there
        root.rmdir()
        if root.parent.name == "hcp":
            root.parent.rmdir()


def _missing(name: str) -> HcpError:
    return HcpError(
        f"There is no embedded cluster named '{name}'", hint="hcp local list shows the ones there are.", exit_code=4
    )


def _spec(layout: Layout, purge: bool) -> Spec | None:
    """What is known of the cluster. --purge must also work on a state that cannot be read."""
    try:
        return specs.load(layout)
    except HcpError:
        if not purge:
            raise
        return None
