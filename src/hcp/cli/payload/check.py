"""`payload check`: which libraries the built programs need, and whether they would find them."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag

COMMAND = Command(
    "payload check",
    "Check that built programs find their libraries on any Linux",
    long="Reads programs, libraries and images in the cache. A program brings every library along except the C "
    "library's own family; what runs only in one root file system is looked up there; an image holds everything "
    "it needs. Each build is checked the same way. Fails when a library is missing, and names it.",
    examples=(
        ("One component", "{prog} payload check haproxy"),
        ("Only what is wrong", "{prog} payload check --quiet"),
    ),
    args=(Arg("COMPONENT", "component to check (default: all that are built)", optional=True, many=True),),
    flags=(Flag("quiet", "bool", False, "print nothing unless a library is missing"),),
    handler="hcp.cli.payload.check:run",
)


def run(call: Call) -> None:
    from hcp.cli.engine.table import table
    from hcp.errors import HcpError
    from hcp.payload.linking.check import refuse
    from hcp.payload.linking.report import HEADER, check_all

    found = check_all(call.args)
    if not call.switch("quiet"):
        print(table(list(HEADER), [list(row) for row in found.rows]))
        print(found.summary)
    for component, lacking in found.missing.items():
        refuse(component, lacking)
    if call.args and not found.rows:
        raise HcpError(f"Not built: {', '.join(call.args)}", hint=f"hcp payload build {' '.join(call.args)}")
