"""`local kubeconfig`: how to reach an embedded cluster as its administrator."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command
from hcp.cli.local.common import NAME

COMMAND = Command(
    "local kubeconfig",
    "Print the kubeconfig of an embedded cluster",
    long="The address in it works on this machine, in the cluster's own pods and in pods of other embedded clusters.",
    examples=(("Use it", "{prog} local kubeconfig > mgmt.kubeconfig"),),
    flags=(NAME,),
    handler="hcp.cli.local.kubeconfig:run",
)


def run(call: Call) -> int:
    from hcp.local.status.kubeconfig import admin_kubeconfig

    print(admin_kubeconfig(call.text("name")), end="")
    return 0
