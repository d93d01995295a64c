"""`dump cluster`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "dump cluster",
    "Collect everything about a hosted cluster for a bug report",
    long="Writes the objects and pod logs of a hosted cluster, of its control plane and of the operator into a "
    "directory, and packs them. Contents of Secrets are left out.",
    examples=(("All that can be had", "{prog} dump cluster --name demo --artifact-dir dump --dump-guest-cluster"),),
    flags=(
        Flag("name", "string", "example", "hosted cluster"),
        Flag("artifact-dir", "string", "", "directory to write into; it is made", metavar="dir", required=True),
        Flag("archive-dump", "bool", True, "pack everything into hypershift-dump.tar.gz there"),
        Flag("as", "string", "", "user to act as", metavar="user"),
        Flag("dump-guest-cluster", "bool", False, "also what is inside the hosted cluster"),
        Flag(
            "dump-guest-cluster-through-kube-service",
            "bool",
            False,
            "the same, through its Service; only possible inside the management cluster",
        ),
        Flag("agent-namespace", "string", "", "namespace of agents", unused="there are no agents"),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("dump-guest-cluster", "dump-guest-cluster-through-kube-service"),),
    handler="hcp.cli.dump.run:run",
)
