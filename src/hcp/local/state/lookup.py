"""Finding a cluster that is said to exist."""

from __future__ import annotations

from hcp.errors import HcpError
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec


def existing(name: str) -> tuple[Layout, Spec]:
    layout = Layout.of(name)
    try:
        spec = specs.load(layout)
    except PermissionError as error:
        raise HcpError(f"The state of cluster '{name}' belongs to another user", hint="Run it with sudo.") from error
    if spec is None:
        raise HcpError(
            f"There is no embedded cluster named '{name}'",
            hint=f"hcp local list shows the ones there are; hcp local up --name {name} makes it.",
            exit_code=4,
        )
    return layout, spec
