"""A page for each command, out of the tables that the command line itself is made of."""

from __future__ import annotations

from collections.abc import Iterable

from tools.docs.markdown import anchor, cell, table

from hcp.cli import tree
from hcp.cli.engine import values
from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.help import METAVARS
from hcp.cli.main import load

FOLDER = "reference/commands"
INDEX = f"{FOLDER}.md"
GENERAL = "General"


def groups() -> dict[str, list[str]]:
    """The commands by the word they begin with."""
    found: dict[str, list[str]] = {}
    for path in tree.COMMANDS:
        found.setdefault(path.partition(" ")[0], []).append(path)
    return found


def pages() -> dict[str, str]:
    """Page by path."""
    found = {f"{FOLDER}/{word}.md": _page(word, paths) for word, paths in groups().items()}
    return {INDEX: _index(), **found}


def navigation() -> list[dict[str, str]]:
    return [{"All commands": INDEX}, *({f"hcp {word}": f"{FOLDER}/{word}.md"} for word in groups())]


INTRODUCTION = """\
# Commands

Every command of `hcp`, from the tables that its parser is made of. `hypershift` is the same program with a few flags
more and that name's defaults; where they differ, the pages say so. Rules that all commands share are in
[The command line](../cli.md).
"""


def _index() -> str:
    rows = [
        (f"[`hcp {path}`](commands/{path.partition(' ')[0]}.md#{anchor(f'hcp {path}')})", cell(tree.describe(path)))
        for path in tree.COMMANDS
    ]
    return "\n".join([INTRODUCTION, *table(("command", "what it does"), rows), ""])


def _page(word: str, paths: list[str]) -> str:
    title = tree.GROUPS.get(word) or tree.describe(word)
    lines = [f"# hcp {word}", "", f"{title}."]
    if word in tree.HIDDEN:
        lines += ["", "Deployments run it; people need it only for development, so `hcp --help` does not list it."]
    for path in paths:
        lines += ["", *_command(load(path))]
    return "\n".join([*lines, ""])


def _command(command: Command) -> list[str]:
    words = " ".join([f"hcp {command.path}", *map(_argument, command.args), "[flags]"])
    long = (command.long or f"{command.short}.").replace("{prog}", "hcp")
    lines = [f"## hcp {command.path}", "", long.replace("\n", "\n\n").replace("<", "&lt;"), "", "```", words, "```"]
    if command.examples:
        lines += ["", "```"]
        for title, text in command.examples:
            lines += [f"# {title}", *text.replace("{prog}", "hcp").splitlines()]
        lines.append("```")
    if command.args:
        rows = [(f"`{arg.name}`", cell(arg.help + (" (optional)" if arg.optional else ""))) for arg in command.args]
        lines += ["", *table(("argument", "meaning"), rows)]
    for title, flags in _by_group(command).items():
        lines += ["", f"**{title} flags**" if title else "**Flags**", ""]
        lines += table(("flag", "default", "meaning"), [_flag(flag) for flag in flags])
    for names in command.exclusive:
        lines += ["", "Only one of them at a time: " + ", ".join(f"`--{name}`" for name in names) + "."]
    return lines


def _argument(arg: object) -> str:
    name, optional, many = (getattr(arg, key) for key in ("name", "optional", "many"))
    text = f"{name}..." if many else str(name)
    return f"[{text}]" if optional else text


def _by_group(command: Command) -> dict[str, list[Flag]]:
    """As --help has them, the general ones last."""
    found: dict[str, list[Flag]] = {}
    for flag in command.flags:
        if not flag.hidden:
            found.setdefault(flag.group, []).append(flag)
    general = found.pop(GENERAL, [])
    return {**found, GENERAL: general} if general else found


def _flag(flag: Flag) -> tuple[str, str, str]:
    metavar = flag.metavar or METAVARS.get(flag.kind, "")
    name = f"`--{flag.name}{' ' + metavar if metavar else ''}`" + (f", `-{flag.short}`" if flag.short else "")
    default = _default(flag, "hcp")
    other = _default(flag, "hypershift")
    if other != default and not flag.only:
        default = f"{default or 'none'}; `hypershift`: {other or 'none'}"
    return name, default, cell(flag.help) + "".join(f" {note}" for note in _notes(flag))


def _notes(flag: Flag) -> Iterable[str]:
    if flag.required:
        yield "**Required.**"
    if flag.choices:
        yield "One of " + ", ".join(f"`{choice}`" for choice in flag.choices if choice) + "."
    if flag.kind in ("stringArray", "stringSlice"):
        yield "May be given several times."
    if flag.only:
        yield f"Only under the name `{flag.only}`."
    if flag.unused:
        yield f"No effect: {cell(flag.unused)}."
    if flag.deprecated:
        yield f"Deprecated: {cell(flag.deprecated)}."


def _default(flag: Flag, prog: str) -> str:
    value = flag.default_for(prog)
    if not value:
        return ""
    if flag.kind == "duration":
        return f"`{values.format_duration(value)}`"
    if isinstance(value, (list, tuple)):
        return f"`{','.join(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
