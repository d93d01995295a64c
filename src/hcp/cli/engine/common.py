"""Flags that mean the same on every command that has them."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

ACCESS = "Management cluster"

NAMESPACE = Flag("namespace", "string", "clusters", "namespace of the hosted cluster", short="n", group=ACCESS)
KUBECONFIG = Flag(
    "kubeconfig",
    "string",
    "",
    "kubeconfig file of the management cluster (default: $KUBECONFIG, in-cluster, ~/.kube/config)",
    metavar="file",
    group=ACCESS,
)
CONTEXT = Flag("context", "string", "", "context of that kubeconfig (default: its current one)", group=ACCESS)
VERBOSE = Flag("verbose", "count", 0, "say more on stderr; -vv shows every API request", short="v", group="General")

# Every command that talks to a management cluster has these three.
CLUSTER_ACCESS = (KUBECONFIG, CONTEXT, VERBOSE)

OUTPUT = Flag(
    "output",
    "string",
    "table",
    "how to print",
    short="o",
    choices=("table", "wide", "yaml", "json", "name"),
    group="General",
)
ALL_NAMESPACES = Flag("all-namespaces", "bool", False, "of every namespace", short="A", group=ACCESS)
WAIT = Flag("wait", "bool", False, "wait until it is done")
TIMEOUT = Flag("timeout", "duration", 0, "give up waiting after this long (exit code 3); 0 is never")
