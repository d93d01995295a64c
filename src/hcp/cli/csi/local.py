"""``hcp csi local``: the storage driver of an embedded cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "csi local",
    "Run the storage driver of an embedded cluster (what its Deployment starts)",
    long="Makes volumes on a btrfs folder of this node and mounts them where the kubelet wants them: shared, as files\n"
    "or as block devices, growing while in use, with snapshots and clones that cost nothing. Needs root.",
    examples=(("With the kubelet's socket", "{prog} csi local --node worker-0"),),
    flags=(
        Flag("node", "string", "", "name of this node", required=True),
        Flag(
            "folder", "string", "/var/lib/storage/csi", "folder of the volumes, on a btrfs with quotas", metavar="dir"
        ),
        Flag("socket", "string", "", "socket of the driver (default: in the kubelet's folder)", metavar="path"),
        Flag("register", "bool", True, "tell the kubelet of the driver"),
    ),
    handler="hcp.cli.csi.local:run",
)


async def run(call: Call) -> int | None:
    """Answer until the process is told to stop."""
    from pathlib import Path

    from hcp.cli.engine.serving import until_stopped
    from hcp.csi.local.driver import serve
    from hcp.csi.local.names import DRIVER
    from hcp.csi.registration import PLUGINS, registration_socket
    from hcp.runtime import setup_logging

    setup_logging()
    socket = Path(call.text("socket")) if call.text("socket") else PLUGINS / DRIVER / "csi.sock"
    registration = registration_socket(DRIVER) if call.switch("register") else None
    return await until_stopped(serve(Path(call.text("folder")), call.text("node"), socket, registration))
