"""`backup verify`: a restore that changes nothing."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import VERBOSE
from hcp.cli.shared.backup_flags import LOCK, LOCKS, S3, STORE

COMMAND = Command(
    "backup verify",
    "Try a backup: restore it into a throw-away etcd and compare",
    long="Reads the whole backup, checks every sum and signature in it and that its objects may be restored, starts an "
    "etcd on this machine from its snapshot, and compares revision, number of keys and hash with those that the "
    "cluster's own etcd told when the backup was made. Nothing is left behind, and no cluster is needed.",
    examples=(
        (
            "One backup",
            "{prog} backup verify clusters_demo_20260131T020000Z --store /backups --passphrase-file passphrase",
        ),
    ),
    args=(Arg("BACKUP", "name of the backup, as list shows it"),),
    flags=(
        STORE,
        Flag("checksums-only", "bool", False, "start no etcd: only sums, signatures and objects"),
        *LOCK,
        *S3,
        VERBOSE,
    ),
    exclusive=(LOCKS,),
    handler="hcp.cli.backup.verify:run",
)


async def run(call: Call) -> int:
    from hcp import payload
    from hcp.backup import checking, naming, verifying
    from hcp.cli.engine.terminal import note
    from hcp.cli.shared.backup_store import lock_of, store_of
    from hcp.errors import HcpError

    name, lock = naming.asked(call.arg("BACKUP")), lock_of(call)
    async with store_of(call) as store:
        whole, kept = await checking.whole(store, name, lock)
        snapshot = whole.snapshot
        note(f"{len(kept.all())} objects and {snapshot.size / 1024**2:.1f} MiB of etcd are as they were written")
        if call.switch("checksums-only"):
            print(f"{name}: all sums are right; no etcd was started")
            return 0
        built = payload.find("etcd")
        programs = built / "bin" if built is not None else None
        found = await verifying.verify(checking.snapshot(store, name, lock), snapshot, programs)
    if found.problems:
        raise HcpError(f"{name} is not what the cluster's etcd held", cause="; ".join(found.problems))
    if found.note:
        note(found.note)
    print(f"{name}: restored and compared; revision {found.revision}, {found.now.keys} keys, hash {found.now.hash}")
    return 0
