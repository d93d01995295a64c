"""`payload timeline`: when each component was made, and how busy the machine was."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "payload timeline",
    "Show when each part was built and how busy the machine was",
    long="A bar for every component of the last run, whichever commands made them: from when to when, how long it "
    "waited for others, and the processor time it took. Reads a file of the cache; nothing is built.",
    examples=(
        ("The last run", "{prog} payload timeline"),
        ("All that is kept", "{prog} payload timeline --all -o json"),
    ),
    flags=(
        Flag("all", "bool", False, "everything that is kept, not only the last run"),
        Flag("output", "string", "table", "how to print", short="o", choices=("table", "json")),
    ),
    handler="hcp.cli.payload.timeline:run",
)


def run(call: Call) -> None:
    import json
    from dataclasses import asdict

    from hcp.payload import timeline
    from hcp.payload.store import cache_root

    spans = timeline.kept(cache_root())
    if not call.switch("all"):
        spans = timeline.last_run(spans)
    if call.text("output") == "json":
        print(json.dumps([asdict(span) for span in spans], indent=2))
    else:
        print(timeline.text(spans))
