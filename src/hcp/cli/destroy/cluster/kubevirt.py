"""`destroy cluster kubevirt`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

TEN_MINUTES = 600 * 10**9

COMMAND = Command(
    "destroy cluster kubevirt",
    "Delete a hosted cluster and all that belongs to it",
    long="Deletes the HostedCluster, waits until the operator has removed its VMs, volumes, control plane and node "
    "pools, and then deletes the Secrets made for it. A run that was stopped can be repeated.",
    examples=(
        ("Delete and wait", "{prog} destroy cluster kubevirt --name demo"),
        (
            "Only remove the Secrets of a cluster that is gone already",
            "{prog} destroy cluster kubevirt --name demo --infra-id demo-x2k4z",
        ),
    ),
    flags=(
        Flag("name", "string", "", "hosted cluster to delete", required=True),
        Flag("cluster-grace-period", "duration", TEN_MINUTES, "how long to wait for the deletion"),
        Flag("destroy-cloud-resources", "bool", True, "also remove volumes and load balancers of the guest"),
        Flag("infra-id", "string", "", "infrastructure id; only needed when the HostedCluster is gone"),
        Flag(
            "force", "bool", False, "do not wait", only="hypershift", unused="the operator removes everything by itself"
        ),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.destroy.cluster.run:run",
)
