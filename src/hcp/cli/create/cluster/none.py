"""`create cluster none`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.create.cluster.kubevirt import FLAGS, INFRA, INPUT, NETWORK
from hcp.cli.create.nodepool.flags import KUBEVIRT_FLAGS, OWN_ARCH, OWN_AUTO_REPAIR, OWN_MACHINES, OWN_UPGRADE_TYPE
from hcp.cli.engine.command import Command, Flag

# Described by other words below, or about virtual machines.
_NOT_HERE = {
    *("base-domain", "publish", "external-dns-domain", "service-publishing-strategy", "api-server-address", "arch"),
    *("node-upgrade-type", "auto-repair", "node-pool-replicas", "node-drain-timeout", "node-volume-detach-timeout"),
    *(flag.name for flag in KUBEVIRT_FLAGS),
}
_NOT_OURS = "machines are your own"

COMMAND = Command(
    "create cluster none",
    "Create a hosted cluster for machines of your own",
    long="Makes a HostedCluster, its Secrets and a first NodePool. The operator starts the control plane in namespace "
    "NAMESPACE-NAME and keeps a document for machines; it makes no machine. Start your own, anywhere from where the "
    "control plane's address is reached, with a drive of create config-drive. By default the control plane is "
    "published on node ports of the management cluster.",
    examples=(
        (
            "A cluster, then a machine that joins it",
            "{prog} create cluster none --name demo --pull-secret ps.json --external-api-server-address 192.0.2.10\n"
            "{prog} create config-drive --nodepool demo --hostname worker-1",
        ),
        (
            "Wait until two machines of your own have joined",
            "{prog} create cluster none --name demo --pull-secret ps.json --node-pool-replicas 2 --wait --timeout 1h",
        ),
        (
            "Only print what would be made, Secrets included",
            "{prog} create cluster none --name demo --pull-secret ps.json --render --render-sensitive \\\n"
            "  --external-api-server-address 192.0.2.10",
        ),
    ),
    flags=(
        *(flag for flag in FLAGS if flag.name not in _NOT_HERE and flag.group != INFRA),
        Flag(
            "base-domain",
            "string",
            "",
            "apps are *.apps.NAME.DOMAIN (default: example.com)",
            group=INPUT,
        ),
        Flag(
            "external-api-server-address",
            "string",
            "",
            "address of the management cluster's node ports that machines reach (default: a node's)",
            group=NETWORK,
        ),
        Flag(
            "expose-through-load-balancer",
            "bool",
            False,
            "publish the API server by a load balancer and the rest by Routes, whose names machines must resolve",
            group=NETWORK,
        ),
        Flag("external-dns-domain", "string", "", "DNS domain", unused="no names are made", group=NETWORK),
        Flag(
            "node-pool-replicas",
            "int32",
            0,
            "machines you are going to start, which --wait waits for; below 0 makes no pool",
            group=OWN_MACHINES,
        ),
        Flag("node-drain-timeout", "duration", 0, "drain time", unused=_NOT_OURS, group=OWN_MACHINES),
        Flag("node-volume-detach-timeout", "duration", 0, "detach time", unused=_NOT_OURS, group=OWN_MACHINES),
        OWN_ARCH,
        OWN_UPGRADE_TYPE,
        OWN_AUTO_REPAIR,
    ),
    exclusive=(("service-cidr", "default-dual"), ("cluster-cidr", "default-dual"), ("ssh-key", "generate-ssh")),
    handler="hcp.cli.create.cluster.run:run",
)
