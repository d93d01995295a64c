"""`destroy cluster none`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.destroy.cluster.kubevirt import COMMAND as KUBEVIRT
from hcp.cli.engine.command import Command

COMMAND = Command(
    "destroy cluster none",
    "Delete a hosted cluster whose machines are your own",
    long="Deletes the HostedCluster, waits until the operator has removed its control plane and node pools, and then "
    "deletes the Secrets made for it. Your machines keep running and have nothing to join any more: end them yourself. "
    "A run that was stopped can be repeated.",
    examples=(
        ("Delete and wait", "{prog} destroy cluster none --name demo"),
        (
            "Only remove the Secrets of a cluster that is gone already",
            "{prog} destroy cluster none --name demo --infra-id demo-x2k4z",
        ),
    ),
    flags=KUBEVIRT.flags,
    handler="hcp.cli.destroy.cluster.run:run",
)
