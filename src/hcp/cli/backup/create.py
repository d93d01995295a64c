"""`backup create`: a snapshot of etcd and all that cannot be made again, in one file."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE
from hcp.cli.shared.backup_flags import LOCK, LOCKS, S3, STORE

COMMAND = Command(
    "backup create",
    "Back up a hosted cluster",
    long="Takes a consistent snapshot of the cluster's etcd while it runs, and puts it into one file together with its "
    "authorities and keys, the HostedCluster, its node pools, and the Secrets and ConfigMaps they name. The file "
    "appears in the store when it is whole. Data in the tenant's volumes is not part of it. Needs the right to read "
    "these objects and to forward a port of the pods etcd-0 to etcd-2.",
    examples=(
        ("Into a folder", "{prog} backup create demo --store /backups --passphrase-file passphrase"),
        (
            "Into a bucket, and keep the last seven",
            "{prog} backup create demo --store s3://backups/hcp --s3-endpoint https://s3.example.com "
            "--key-file backup.key --keep 7",
        ),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        STORE,
        Flag("keep", "int", 0, "delete all but the newest N of this cluster afterwards; 0 keeps all", metavar="N"),
        Flag("scheduled-by", "string", "", "CronJob that ends with the cluster", hidden=True),
        *LOCK,
        *S3,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(LOCKS,),
    handler="hcp.cli.backup.create:run",
)


async def run(call: Call) -> int:
    import datetime as dt

    from hcp.api import names
    from hcp.backup import creating
    from hcp.backup.reaching import etcd_of
    from hcp.cli.engine.grammar import refuse
    from hcp.cli.engine.terminal import note
    from hcp.cli.shared.backup_store import lock_of, store_of
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.kubeconfigs import NOT_FOUND, find_cluster
    from hcp.errors import HcpError

    namespace, name, keep = call.text("namespace"), call.arg("NAME"), call.number("keep")
    if keep < 0:
        raise refuse("keep", str(keep), "a number of backups cannot be negative", "0 or more")
    lock = lock_of(call)
    async with store_of(call) as store, connect(call) as client:
        try:
            cluster = await find_cluster(client, call.prog, namespace, name)
        except HcpError as error:
            if call.text("scheduled-by") and error.exit_code == NOT_FOUND:
                from hcp.backup import jobs

                await jobs.end(client, call.text("scheduled-by"), namespace)
                note(f"hosted cluster {namespace}/{name} is gone, and so is its schedule; its backups stay")
                return 0
            raise
        hosted = names.control_plane_namespace(namespace, name)
        made = await creating.create(client, store, lock, cluster, hosted, etcd_of, note, dt.datetime.now(dt.UTC))
        print(made, flush=True)
        await creating.let_go(store, made, keep, note)
    return 0
