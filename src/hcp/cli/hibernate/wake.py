"""`wake`: end the sleep of a hosted cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

COMMAND = Command(
    "wake",
    "Wake a hosted cluster that sleeps",
    long="Its control plane starts first, then its machines, with the disks and names they had. A cluster with a "
    "schedule falls asleep again at its next date. One that was put to sleep with --wake-on-request also wakes when "
    "somebody connects to its API.",
    examples=(("And wait for its nodes", "{prog} wake demo --wait"),),
    args=(Arg("NAME", "hosted cluster", optional=True),),
    flags=(
        Flag("name", "string", "", "hosted cluster, instead of NAME", metavar="name"),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.hibernate.run:wake",
)
