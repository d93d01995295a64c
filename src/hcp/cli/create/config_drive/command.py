"""`create config-drive`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "create config-drive",
    "Write what a machine of your own needs to join a hosted cluster",
    long="For node pools of platform None. Writes a small disk image with the pool's pointer document (where the node "
    "document is, and a token for it) and the machine's name, and notes the name in the pool, so that the machine's "
    "certificate is approved when it asks for one. Attach the image to a machine that boots the release's node disk. "
    "Make it when you need it: its token is good for five and a half hours at least. A machine that has joined "
    "needs it no more. The file is a secret: whoever reads it can read the node document.",
    examples=(
        (
            "A machine in QEMU",
            "{prog} create config-drive --nodepool demo --hostname worker-1\n"
            "qemu-system-x86_64 -m 2048 -smp 2 -nographic -nic user,model=virtio \\\n"
            "  -drive file=node.qcow2,if=virtio -drive file=worker-1.iso,if=virtio,format=raw,readonly=on",
        ),
        (
            "Only the Ignition document, for a machine that takes it in another way",
            "{prog} create config-drive --nodepool demo --hostname worker-1 --ignition > worker-1.ign",
        ),
    ),
    flags=(
        Flag("nodepool", "string", "", "node pool that the machine joins", required=True),
        Flag("hostname", "string", "", "name of the machine, and of its node", required=True),
        Flag("output", "string", "", "file to write (default: HOSTNAME.iso)", short="o", metavar="file"),
        Flag("ignition", "bool", False, "print the Ignition document instead of writing an image"),
        Flag(
            "approve",
            "bool",
            True,
            "let the machine join when it asks; =false leaves its certificate to kubectl certificate approve",
        ),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("output", "ignition"),),
    handler="hcp.cli.create.config_drive.run:run",
)
