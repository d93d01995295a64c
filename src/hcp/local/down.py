"""`hcp local down`: nothing of the cluster stays on the machine; with --purge not even its data."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from hcp.errors import HcpError
from hcp.local import control
from hcp.local import spec as specs
from hcp.local.layout import Layout
from hcp.local.locks import exclusive
from hcp.local.plan import need_root
from hcp.local.spec import Spec

Say = Callable[[str], None]


def down(name: str, *, purge: bool, say: Say) -> None:
    layout = Layout.of(name)
    if not layout.root.is_dir():
        raise HcpError(
            f"There is no embedded cluster named '{name}'", hint="hcp local list shows the ones there are.", exit_code=4
        )
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{name}', waiting for it")):
        spec = _spec(layout, purge)
        if spec is not None and spec.has_node:
            need_root(spec.profile)
        was_up = control.stop(layout) or control.was_started(layout)
        if spec is not None and spec.has_node:
            from hcp.local.cleanup import clean_machine

            clean_machine(layout, spec)
        for path in (layout.supervisor, layout.socket):
            path.unlink(missing_ok=True)
        if not was_up and not purge:
            raise HcpError(
                f"Cluster '{name}' is not up",
                hint=f"hcp local up --name {name} starts it; hcp local down --name {name} --purge removes its data.",
            )
        if purge:
            shutil.rmtree(layout.root)
    if purge and not any(layout.root.parent.glob("*/")):
        shutil.rmtree(layout.root.parent, ignore_errors=True)


def _spec(layout: Layout, purge: bool) -> Spec | None:
    """What is known of the cluster. --purge must also work on a state that cannot be read."""
    try:
        return specs.load(layout)
    except HcpError:
        if not purge:
            raise
        return None
