"""`create nodepool kubevirt`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.create.nodepool.flags import ARCH, AUTO_REPAIR, KUBEVIRT_FLAGS, UPGRADE_TYPE
from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

POOL = "Node pool"

COMMAND = Command(
    "create nodepool kubevirt",
    "Add a pool of KubeVirt workers to a hosted cluster",
    long="Makes a NodePool. Its machines run the hosted cluster's release, unless another one is named that is at most "
    "three minor versions older.",
    examples=(
        (
            "Three big workers",
            "{prog} create nodepool kubevirt --cluster-name demo --name big --replicas 3 --memory 16Gi --cores 8",
        ),
        ("Only print the NodePool", "{prog} create nodepool kubevirt --cluster-name demo --name big --render"),
    ),
    flags=(
        Flag("name", "string", "", "name of the node pool; required", hypershift="example", group=POOL),
        Flag("cluster-name", "string", "example", "hosted cluster the pool belongs to", group=POOL),
        Flag("replicas", "int32", 2, "number of nodes", group=POOL),
        Flag("node-count", "int32", 2, "number of nodes", deprecated="use --replicas", group=POOL),
        Flag("release-image", "string", "", "release of the nodes (default: the cluster's)", group=POOL),
        UPGRADE_TYPE,
        ARCH,
        AUTO_REPAIR,
        *KUBEVIRT_FLAGS,
        Flag("render", "bool", False, "print the NodePool instead of creating it; needs no cluster", group=POOL),
        Flag("wait", "bool", False, "wait until all its nodes are ready", group=POOL),
        Flag("timeout", "duration", 0, "give up waiting after this long (exit code 3); 0 is never", group=POOL),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("replicas", "node-count"),),
    handler="hcp.cli.create.nodepool.run:run",
)
