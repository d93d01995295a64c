"""`payload clean`: gives disk space back, and says how much of what."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hcp.payload.cleaning import Freed

COMMAND = Command(
    "payload clean",
    "Remove built artifacts",
    long="Without arguments: leftovers of stopped builds, Go modules, logs, and artifacts that this version of "
    "{prog} does not use. With names: those artifacts. With --all: everything in the cache "
    "($XDG_CACHE_HOME/hcp, by default ~/.cache/hcp). What another run is building stays, and so does what a running "
    "embedded cluster uses.",
    examples=(
        ("Only leftovers", "{prog} payload clean"),
        ("What would go, and how much that is", "{prog} payload clean --all --dry-run"),
        ("Everything", "{prog} payload clean --all"),
    ),
    args=(Arg("COMPONENT", "component to remove", optional=True, many=True),),
    flags=(
        Flag("all", "bool", False, "remove every artifact"),
        Flag("dry-run", "bool", False, "remove nothing, only say what would go"),
    ),
    handler="hcp.cli.payload.clean:run",
)


def run(call: Call) -> None:
    from hcp.cli.engine.command import UsageError
    from hcp.local.lifecycle.in_use import user_of
    from hcp.payload.cleaning import clean
    from hcp.payload.registry import default_registry
    from hcp.payload.store import Store

    everything, dry, names = call.switch("all"), call.switch("dry-run"), tuple(call.args)
    if everything and names:
        raise UsageError("--all and names exclude each other", hint="without names everything goes")
    registry, store = default_registry(), Store()
    for name in names:
        registry.get(name)
    freed = clean(store, registry, everything=everything, names=names, dry=dry, user=user_of())
    print(text(freed, str(store.root), dry))


def text(freed: Freed, root: str, dry: bool) -> str:
    """What went, by kind, what stayed and why, and the cache before and after."""
    from hcp.cli.engine.table import table
    from hcp.payload.cleaning import NAMED, OLD, human_size

    rows = []
    for kind, found in freed.what.items():
        names = f": {', '.join(sorted(name for name, _ in found))}" if kind in (NAMED, OLD) else ""
        rows.append([human_size(sum(size for _, size in found)), f"{kind} ({len(found)}){names}"])
    lines = [table(["SIZE", "WOULD GO" if dry else "REMOVED"], rows)] if rows else []
    lines += [f"stays: {what}, {why}" for what, why in freed.kept]
    verb = "would be freed" if dry else "freed"
    held, holds = human_size(freed.before), human_size(freed.after)
    return "\n".join(
        [*lines, f"{human_size(freed.size)} {verb}: {root} held {held}, {'would hold' if dry else 'now'} {holds}"]
    )
