"""Help texts, made from the tables."""

from __future__ import annotations

from hcp.cli import tree
from hcp.cli.engine import values
from hcp.cli.engine.command import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hcp.cli.engine.command import Command

WIDTH = 110
METAVARS = {
    "string": "string",
    "int": "number",
    "int32": "number",
    "uint32": "number",
    "duration": "duration",
    "stringArray": "value",
    "stringSlice": "a,b",
    "stringToString": "key=value",
}
ROOT = {
    "hcp": "Hosted Kubernetes control planes with KubeVirt workers.",
    "hypershift": "Hosted Kubernetes control planes with KubeVirt workers; this name has hypershift's defaults.",
}
HELP = Flag("help", "bool", False, "show this help", short="h")
START = (
    ("Try it on this machine", "sudo {prog} demo"),
    ("Make a hosted cluster with two workers", "{prog} create cluster kubevirt --name demo --node-pool-replicas 2"
     " --pull-secret ps.json --wait"),
    ("See how it is doing", "{prog} status demo"),
    ("Use it", "{prog} create kubeconfig --name demo > demo.kubeconfig"),
)  # fmt: skip


def group_help(prog: str, path: str) -> str:
    """Help of a node that only has children."""
    title = tree.GROUPS[path] + "." if path else ROOT[prog]
    lines = [title, "", "Usage:", f"  {prog} {path + ' ' if path else ''}COMMAND [flags]", ""]
    if not path:
        lines += _examples(prog, START)
    lines += _children(path)
    lines += [f"{prog} {path + ' ' if path else ''}COMMAND --help shows a command's flags and examples.", ""]
    return "\n".join(lines)


def command_help(prog: str, command: Command) -> str:
    """Help of a command: what it does, how it is typed, examples, every flag with its default."""
    usage = " ".join([prog, command.path, *(_argument(arg.name, arg.optional, arg.many) for arg in command.args)])
    long = (command.long or command.short + ".").replace("{prog}", prog)
    lines = [line for part in long.split("\n") for line in _wrap(part, WIDTH)]
    lines += ["", "Usage:", f"  {usage} [flags]", ""]
    lines += _examples(prog, command.examples)
    if command.args:
        lines.append("Arguments:")
        lines += [f"  {arg.name:<20} {arg.help}" for arg in command.args]
        lines.append("")
    lines += _children(command.path)
    groups: dict[str, list[Flag]] = {}
    for flag in command.flags:
        if not flag.hidden and flag.only in ("", prog):
            groups.setdefault(flag.group, []).append(flag)
    general = groups.pop("General", [])
    for title, flags in groups.items():
        lines += [f"{title} flags:" if title else "Flags:", *_flags(prog, flags), ""]
    lines += ["General flags:", *_flags(prog, [*general, HELP]), ""]
    return "\n".join(lines)


def _argument(name: str, optional: bool, many: bool) -> str:
    text = f"{name}..." if many else name
    return f"[{text}]" if optional else text


def _children(path: str) -> list[str]:
    names = [name for name in tree.children(path) if path or name not in tree.HIDDEN]
    if not names:
        return []
    width = max(len(name) for name in names) + 2
    prefix = f"{path} " if path else ""
    return ["Commands:", *(f"  {name:<{width}}{tree.describe(prefix + name)}" for name in names), ""]


def _examples(prog: str, examples: tuple[tuple[str, str], ...]) -> list[str]:
    if not examples:
        return []
    lines = ["Examples:"]
    for title, text in examples:
        lines.append(f"  # {title}")
        lines += ["  " + line for line in text.replace("{prog}", prog).splitlines()]
    lines.append("")
    return lines


def _flags(prog: str, flags: list[Flag]) -> list[str]:
    heads = [_head(flag) for flag in flags]
    column = min(max((len(head) for head in heads), default=0) + 2, 44)
    lines = []
    for head, flag in zip(heads, flags, strict=True):
        text = _wrap(flag.help + _tail(prog, flag), WIDTH - column)
        first = head + "  " if len(head) >= column else head.ljust(column)
        lines.append(first + text[0])
        lines += [" " * column + line for line in text[1:]]
    return lines


def _head(flag: Flag) -> str:
    short = f"  -{flag.short}, " if flag.short else "      "
    metavar = flag.metavar or METAVARS.get(flag.kind, "")
    return f"{short}--{flag.name} {metavar}".rstrip()


def _tail(prog: str, flag: Flag) -> str:
    notes = []
    if flag.choices:
        notes.append("one of " + ", ".join(choice for choice in flag.choices if choice))
    if flag.required:
        notes.append("required")
    if flag.kind == "stringArray":
        notes.append("repeatable")
    default = flag.default_for(prog)
    if default:
        notes.append(f"default {_default(flag.kind, default)}")
    if flag.unused:
        notes.append("no effect: " + flag.unused)
    if flag.deprecated:
        notes.append("deprecated: " + flag.deprecated)
    return f" ({'; '.join(notes)})" if notes else ""


def _default(kind: str, default: object) -> str:
    if kind == "duration" and isinstance(default, int):
        return values.format_duration(default)
    if isinstance(default, (list, tuple)):
        return ",".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)


def _wrap(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
