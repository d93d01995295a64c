"""`backup list`: what is in a store."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import VERBOSE
from hcp.cli.shared.backup_flags import S3, STORE

COMMAND = Command(
    "backup list",
    "List the backups in a store",
    long="Reads the first line of every backup; no passphrase and no cluster is needed. Of an encrypted backup that "
    "line is proven when it is verified or restored.",
    examples=(("All of one cluster", "{prog} backup list demo -n clusters --store /backups"),),
    args=(Arg("NAME", "only backups of this hosted cluster", optional=True),),
    flags=(
        STORE,
        Flag("namespace", "string", "", "only of hosted clusters of this namespace", short="n"),
        Flag("output", "string", "table", "how to print", short="o", choices=("table", "json", "yaml", "name")),
        *S3,
        VERBOSE,
    ),
    handler="hcp.cli.backup.list:run",
)


async def run(call: Call) -> int:
    import sys

    from hcp.backup import checking
    from hcp.backup.sealing import BrokenBackup
    from hcp.cli.engine.table import show_data, table
    from hcp.cli.shared.backup_store import store_of

    found = []
    async with store_of(call) as store:
        for entry in await store.entries():
            name = entry.name
            if call.arg("NAME") not in ("", name.cluster) or call.text("namespace") not in ("", name.namespace):
                continue
            try:
                told, kind = await checking.told(store, name)
                version, lock = str(told.get("version") or "")[:40], kind or "none"
            except BrokenBackup as error:
                version, lock = "", f"unreadable: {error.cause}"
            found.append(
                {
                    "name": str(name),
                    "namespace": name.namespace,
                    "cluster": name.cluster,
                    "created": name.told_time,
                    "bytes": entry.size,
                    "version": version,
                    "encryption": lock,
                }
            )
        place = store.place
    form = call.text("output")
    if form in ("json", "yaml"):
        show_data(form, found)
    elif form == "name":
        for one in found:
            print(one["name"])
    elif not found:
        print(f"no backups in {place}", file=sys.stderr)
    else:
        rows = [
            [
                *(str(one["name"]), str(one["created"]), f"{int(str(one['bytes'])) / 1024**2:.1f} MiB"),
                *(str(one["version"]), str(one["encryption"])),
            ]
            for one in found
        ]
        print(table(["BACKUP", "CREATED", "SIZE", "VERSION", "ENCRYPTION"], rows))
    return 0
