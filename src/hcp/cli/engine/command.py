"""The table a command is made of, and the parser that reads a command line with pflag's rules.

How to add a command
--------------------
1. `tree.py` lists the command's path, its module and one line of help. Nothing else knows about it.
2. The module holds a `COMMAND` table. It is imported only when this command is the one being run, so it must stay
   cheap: no aiohttp, yaml, json, dataclasses or typing at the top. Import those inside the handler.
3. The handler is `module:function`, imported after the command line is known to be good. It takes a `Call`, may be
   `async`, and returns an exit code or None for 0. What goes wrong is raised as `hcp.errors.HcpError`.

    # src/hcp/cli/scale/nodepool.py
    from hcp.cli.engine.command import Arg, Call, Command, Flag
    from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

    COMMAND = Command(
        "scale nodepool",
        "Change how many nodes a node pool has",
        long="The operator makes or drains machines until the pool has the number asked for.",
        examples=(("Four nodes", "{prog} scale nodepool demo --replicas 4"),),
        args=(Arg("NAME", "node pool to scale"),),
        flags=(
            Flag("replicas", "int32", None, "number of nodes", required=True),
            NAMESPACE,
            *CLUSTER_ACCESS,
        ),
        exclusive=(),
        handler="hcp.cli.scale.nodepool:run",
    )

    async def run(call: Call) -> int | None:
        from hcp.cli.shared.cluster import connect

        async with connect(call) as client:
            ...  # call.arg("NAME"), call.number("replicas"), call.text("namespace"), call.changed("replicas")

Flag kinds and how a handler reads them: string (`call.text`), bool (`call.switch`), int, int32, uint32 and count
(`call.number`), duration (`call.seconds` as float, `call.duration` as Go text; its default is in nanoseconds),
stringArray, one use is one element, and stringSlice, comma separated (`call.items`), stringToString, k=v,k2=v2
(`call.pairs`). `choices` names the allowed values, `ignore_case=True` accepts any case and stores the listed spelling.
`hypershift=` is the default under that name where it differs; `only="hypershift"` hides the flag from `hcp`.
A command's result goes to stdout, everything else to stderr (`hcp.cli.engine.terminal.note`, `warn`).
"""

from __future__ import annotations

from hcp.cli.engine import values
from hcp.errors import HcpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LISTS = ("stringArray", "stringSlice")


class UsageError(HcpError):
    """The command line itself is wrong; nothing was contacted or written."""


class Flag:
    """One flag: how it is spelled, what it accepts, what it means."""

    __slots__ = (
        "choices",
        "default",
        "deprecated",
        "group",
        "help",
        "hidden",
        "hypershift",
        "ignore_case",
        "kind",
        "metavar",
        "name",
        "only",
        "required",
        "short",
        "unused",
    )

    def __init__(
        self,
        name: str,
        kind: str = "string",
        default: Any = None,
        help: str = "",
        *,
        short: str = "",
        choices: tuple[str, ...] = (),
        ignore_case: bool = False,
        required: bool = False,
        group: str = "",
        metavar: str = "",
        hypershift: Any = None,
        only: str = "",
        deprecated: str = "",
        unused: str = "",
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = values.ZERO[kind] if default is None else default
        self.help = help
        self.short = short
        self.choices = choices
        self.ignore_case = ignore_case
        self.required = required
        self.group = group
        self.metavar = metavar
        self.hypershift = self.default if hypershift is None else hypershift
        self.only = only
        self.deprecated = deprecated
        self.unused = unused
        self.hidden = hidden

    def default_for(self, prog: str) -> Any:
        return self.hypershift if prog == "hypershift" else self.default

    @property
    def takes_value(self) -> bool:
        return self.kind not in ("bool", "count")


class Arg:
    """One positional argument; `many` takes the rest of the line."""

    __slots__ = ("help", "many", "name", "optional")

    def __init__(self, name: str, help: str = "", *, optional: bool = False, many: bool = False) -> None:
        self.name = name
        self.help = help
        self.optional = optional
        self.many = many


class Command:
    """One command: what it is called, what it takes, and where its code is."""

    __slots__ = ("args", "examples", "exclusive", "flags", "handler", "long", "path", "short")

    def __init__(
        self,
        path: str,
        short: str,
        *,
        handler: str,
        long: str = "",
        examples: tuple[tuple[str, str], ...] = (),
        args: tuple[Arg, ...] = (),
        flags: tuple[Flag, ...] = (),
        exclusive: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.path = path
        self.short = short
        self.handler = handler
        self.long = long
        self.examples = examples
        self.args = args
        self.flags = flags
        self.exclusive = exclusive

    def flag(self, name: str, prog: str = "") -> Flag | None:
        for flag in self.flags:
            if flag.name == name and (not prog or not flag.only or flag.only == prog):
                return flag
        return None


class Call:
    """A command line that was understood: the handler's only parameter."""

    __slots__ = ("after", "args", "command", "given", "prog", "values")

    def __init__(self, prog: str, command: Command) -> None:
        self.prog = prog
        self.command = command
        self.values: dict[str, Any] = {}
        self.given: set[str] = set()
        self.args: list[str] = []
        # The flag typed right before each argument: `--switch false` is a common slip.
        self.after: list[str] = []

    def changed(self, name: str) -> bool:
        """Whether the user typed the flag, also when with its default value."""
        return name in self.given

    def text(self, name: str) -> str:
        value: str = self.values[name]
        return value

    def switch(self, name: str) -> bool:
        return bool(self.values[name])

    def number(self, name: str) -> int:
        value: int = self.values[name]
        return value

    def items(self, name: str) -> list[str]:
        """A stringArray or stringSlice."""
        return list(self.values[name])

    def pairs(self, name: str) -> dict[str, str]:
        """A stringToString."""
        return dict(self.values[name])

    def seconds(self, name: str) -> float:
        nanoseconds: int = self.values[name]
        return nanoseconds / 1e9

    def duration(self, name: str) -> str:
        """The duration as Go prints it: 0s, 5m0s, 1h30m0s."""
        return values.format_duration(self.values[name])

    def arg(self, name: str) -> str:
        """The positional argument of that name, or the empty string."""
        for index, arg in enumerate(self.command.args):
            if arg.name == name:
                return self.args[index] if index < len(self.args) else ""
        raise KeyError(name)


def parse(prog: str, command: Command, words: Iterable[str]) -> Call:
    """Reads the words after the command's own name; raises UsageError."""
    call = Call(prog, command)
    for flag in command.flags:
        if not flag.only or flag.only == prog or flag.name not in call.values:
            call.values[flag.name] = flag.default_for(prog)
    rest = list(words)
    rest.reverse()
    last = ""
    while rest:
        word = rest.pop()
        if word == "--":
            rest.reverse()
            call.args.extend(rest)
            break
        if word.startswith("--"):
            _long(call, word, rest)
        elif len(word) > 1 and word[0] == "-":
            _short(call, word, rest)
        else:
            call.args.append(word)
            call.after.append(last)
        last = word
    _check(call)
    return call


def _long(call: Call, word: str, rest: list[str]) -> None:
    name, equals, text = word[2:].partition("=")
    if not name or name[0] == "-":
        raise UsageError(f"bad flag syntax: {word}", hint=help_hint(call))
    flag = call.command.flag(name, call.prog)
    if flag is None:
        raise unknown_flag(call.prog, call.command.path, name, call.command.flags)
    if not equals:
        if flag.takes_value:
            if not rest:
                raise UsageError(f"flag needs an argument: --{name}", hint=help_hint(call))
            text = rest.pop()
        else:
            text = "true"
    store(call, flag, text)


def _short(call: Call, word: str, rest: list[str]) -> None:
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = next((f for f in call.command.flags if f.short == letter and f.only in ("", call.prog)), None)
        if flag is None:
            raise UsageError(f"unknown shorthand flag: {letter!r} in {word}", hint=help_hint(call))
        if letters[:1] == "=":
            text, letters = letters[1:], ""
        elif not flag.takes_value:
            text = "true"
        elif letters:
            text, letters = letters, ""
        elif rest:
            text = rest.pop()
        else:
            raise UsageError(f"flag needs an argument: {letter!r} in {word}", hint=help_hint(call))
        store(call, flag, text)


def store(call: Call, flag: Flag, text: str) -> None:
    """Reads one value into the call: lists and maps grow, everything else is replaced."""
    try:
        value = values.READERS[flag.kind](text)
        if flag.choices:
            value = _chosen(flag, value)
    except ValueError as error:
        raise UsageError(f'invalid argument "{text}" for "--{flag.name}" flag', cause=str(error)) from None
    old = call.values[flag.name]
    if flag.name in call.given:
        if flag.kind in LISTS:
            value = [*old, *value]
        elif flag.kind == "stringToString":
            value = {**old, **value}
        elif flag.kind == "count":
            value = old + value
    call.values[flag.name] = value
    call.given.add(flag.name)


def _chosen(flag: Flag, value: Any) -> Any:
    """The listed spelling of a value that has to be one of the choices; lists are checked piece by piece."""
    if isinstance(value, list):
        return [_chosen(flag, piece) for piece in value]
    for choice in flag.choices:
        if value == choice or (flag.ignore_case and value.lower() == choice.lower()):
            return choice
    allowed = ", ".join(choice or '""' for choice in flag.choices)
    what = f"{value!r} is not allowed" if flag.kind in LISTS else "not an allowed value"
    raise ValueError(f"{what}; allowed: {allowed}")


def _check(call: Call) -> None:
    command = call.command
    missing = [flag.name for flag in command.flags if flag.required and flag.name not in call.given]
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise UsageError(f"required flag(s) {names} not set", hint=help_hint(call))
    for group in command.exclusive:
        used = [name for name in group if name in call.given]
        if len(used) > 1:
            raise UsageError(
                f"if any flags in the group [{' '.join(group)}] are set none of the others can be; "
                f"[{' '.join(sorted(used))}] were all set"
            )
    most = None if any(arg.many for arg in command.args) else len(command.args)
    if most is not None and len(call.args) > most:
        raise _extra(call, most)
    least = sum(not arg.optional for arg in command.args)
    if len(call.args) < least:
        arg = command.args[len(call.args)]
        raise UsageError(f"missing argument {arg.name}: {arg.help}", hint=help_hint(call))


def _extra(call: Call, index: int) -> UsageError:
    word, hint = call.args[index], help_hint(call)
    before = call.after[index].lstrip("-") if index < len(call.after) else ""
    if word in (*values.TRUE, *values.FALSE) and before in call.given:
        hint = f"a switch takes its value after an equals sign: --{before}={word}"
    return UsageError(f'unexpected argument "{word}" for "{call.prog} {call.command.path}"', hint=hint)


def unknown_flag(prog: str, path: str, name: str, flags: Iterable[Flag]) -> UsageError:
    """Says which flag was meant, if one is close, or that the other program name has it."""
    known = list(flags)
    hint = f"{prog} {path} --help lists the flags"
    if any(flag.name == name for flag in known):
        other = next(flag.only for flag in known if flag.name == name)
        hint = f"--{name} exists under the name {other}: {other} {path} --{name} …"
    else:
        from difflib import get_close_matches

        close = get_close_matches(name, [flag.name for flag in known if not flag.hidden], 1)
        if close:
            hint = f"did you mean --{close[0]}?"
    return UsageError(f"unknown flag: --{name}", hint=hint)


def help_hint(call: Call) -> str:
    return f"{call.prog} {call.command.path} --help shows how it is used"
