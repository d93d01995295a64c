"""`restore`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT
from hcp.cli.shared.backup_flags import LOCK, LOCKS, S3, STORE_HELP

COMMAND = Command(
    "restore",
    "Bring a hosted cluster back from a backup",
    long="Into the management cluster it was in, after it was destroyed, or into another one. The cluster comes back "
    "with its authorities and keys: kubeconfigs and tokens of tenants stay valid, and where the API has a name of its "
    "own, it keeps it. Where it was published by an address it gets another one; fetch the kubeconfig again. Nothing "
    "that exists is changed. If the command stops, run it again: it goes on. Machines that still run on an external "
    "infra cluster are taken over as they are: none is restarted or made a second time, as long as the API has a name "
    "of its own that nodes find it by. Where that changes too they are replaced one after another. Node "
    "pools whose machines are lost are made anew, and their former nodes are taken out of the cluster.",
    examples=(
        ("The newest backup", "{prog} restore demo --from /backups --passphrase-file passphrase"),
        (
            "A certain one, into another management cluster",
            "{prog} restore demo --from s3://backups/hcp --backup clusters_demo_20260131T020000Z "
            "--key-file backup.key --kubeconfig other.kubeconfig",
        ),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("from", "string", "", STORE_HELP, metavar="place", required=True, group="Store"),
        Flag("backup", "string", "", "name of the backup (default: the newest of the cluster)", metavar="backup"),
        Flag("no-node-pools", "bool", False, "only the control plane; former nodes stay in the cluster as they were"),
        Flag("new-machines", "bool", False, "make node pools anew, also where their machines run on external infra"),
        Flag(
            "force",
            "bool",
            False,
            "take machines on external infra over even if the cluster still runs somewhere, or their nodes are silent",
        ),
        Flag(
            "allow-privileges",
            "stringSlice",
            (),
            "accept what needs a right of its own in the backup, by name, as hcp install --allow-privileges has them",
        ),
        *LOCK,
        *S3,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(LOCKS, ("no-node-pools", "new-machines")),
    handler="hcp.cli.restore.run:run",
)
