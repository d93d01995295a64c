"""`upgrade nodepool`: move the nodes of a pool to another release."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

COMMAND = Command(
    "upgrade nodepool",
    "Move a node pool to another release",
    long="Changes the release of the NodePool; the operator replaces its machines one by one.",
    examples=(("To the release of its cluster", "{prog} upgrade nodepool demo --wait"),),
    args=(Arg("NAME", "node pool"),),
    flags=(
        Flag("release-image", "string", "", "release to move to (default: the hosted cluster's)"),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.upgrade.run:nodepool",
)
