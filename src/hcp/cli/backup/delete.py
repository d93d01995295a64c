"""`backup delete`: backups that nobody needs any more."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.engine.common import VERBOSE
from hcp.cli.shared.backup_flags import S3, STORE

COMMAND = Command(
    "backup delete",
    "Delete backups from a store",
    long="Each by its whole name; there is no way back. `backup create --keep N` deletes old ones by itself.",
    examples=(("One", "{prog} backup delete clusters_demo_20260131T020000Z --store /backups"),),
    args=(Arg("BACKUP", "names of backups, as list shows them", many=True),),
    flags=(STORE, *S3, VERBOSE),
    handler="hcp.cli.backup.delete:run",
)


async def run(call: Call) -> int:
    from hcp.backup import naming
    from hcp.cli.shared.backup_store import store_of

    names = [naming.asked(text) for text in call.args]
    async with store_of(call) as store:
        for name in names:
            await store.remove(name)
            print(f"{name} is deleted")
    return 0
