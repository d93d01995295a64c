"""`version`: what this client is and what the management cluster's operator supports."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import ACCESS, CLUSTER_ACCESS

COMMAND = Command(
    "version",
    "Print the client's and the server's version",
    long="Prints the version of this client and, from ConfigMap supported-versions, of the operator and its releases.",
    examples=(("Only this client, without a cluster", "{prog} version --client-only"),),
    flags=(
        Flag("commit-only", "bool", False, "print the commit this client was made from, nothing else"),
        Flag("client-only", "bool", False, "do not ask the management cluster"),
        Flag("namespace", "string", "hypershift", "namespace of the operator", short="n", group=ACCESS),
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.version.run:run",
)
