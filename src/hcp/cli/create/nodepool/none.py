"""`create nodepool none`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.create.nodepool.flags import OWN_ARCH, OWN_AUTO_REPAIR, OWN_UPGRADE_TYPE
from hcp.cli.create.nodepool.kubevirt import POOL
from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "create nodepool none",
    "Add a pool for machines of your own to a hosted cluster",
    long="Makes a NodePool of platform None. No machine is made: the pool has a document for machines, and create "
    "config-drive writes it where a machine finds it. Nodes that join with it get the pool's labels and taints.",
    examples=(
        (
            "A pool, and what its first machine needs",
            "{prog} create nodepool none --cluster-name demo --name edge\n"
            "{prog} create config-drive --nodepool edge --hostname edge-1",
        ),
        ("Only print the NodePool", "{prog} create nodepool none --cluster-name demo --name edge --render"),
    ),
    flags=(
        Flag("name", "string", "", "name of the node pool; required", hypershift="example", group=POOL),
        Flag("cluster-name", "string", "example", "hosted cluster the pool belongs to", group=POOL),
        Flag("replicas", "int32", 0, "machines you are going to start, which --wait waits for", group=POOL),
        Flag("release-image", "string", "", "release of the nodes (default: the cluster's)", group=POOL),
        OWN_ARCH,
        OWN_UPGRADE_TYPE,
        OWN_AUTO_REPAIR,
        Flag("render", "bool", False, "print the NodePool instead of creating it; needs no cluster", group=POOL),
        Flag("wait", "bool", False, "wait until all its nodes are ready", group=POOL),
        Flag("timeout", "duration", 0, "give up waiting after this long (exit code 3); 0 is never", group=POOL),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.create.nodepool.run:run",
)
