"""`payload clean`: gives disk space back."""

from __future__ import annotations

from hcp.cli.command import Arg, Call, Command, Flag

COMMAND = Command(
    "payload clean",
    "Remove built artifacts",
    long="Without arguments: leftovers of stopped builds, Go modules, logs, and artifacts that this version of "
    "{prog} does not use. With names: those artifacts. With --all: everything in the cache. "
    "What another run is building stays.",
    examples=(("Only leftovers", "{prog} payload clean"), ("Everything", "{prog} payload clean --all")),
    args=(Arg("COMPONENT", "component to remove", optional=True, many=True),),
    flags=(Flag("all", "bool", False, "remove every artifact"),),
    handler="hcp.cli.payload_clean:run",
)


def run(call: Call) -> None:
    from hcp.payload.cleaning import clean, human_size
    from hcp.payload.registry import default_registry
    from hcp.payload.store import Store

    registry = default_registry()
    for name in call.args:
        registry.get(name)
    freed = clean(Store(), registry, everything=call.switch("all"), names=tuple(call.args))
    for what in freed.what:
        print(f"removed {what}")
    print(f"{human_size(freed.size)} freed")
