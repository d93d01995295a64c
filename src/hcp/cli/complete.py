"""What could come next on a command line; the shell's completion scripts ask this."""

from __future__ import annotations

from hcp.cli import tree
from hcp.cli.engine.command import Command, Flag
from hcp.cli.main import find, load
from hcp.errors import HcpError


def candidates(prog: str, words: list[str]) -> list[str]:
    """Words the last, unfinished word may become. The list is empty where a file name is as good as anything."""
    *before, word = words or [""]
    try:
        path, _, rest = find(prog, before)
    except HcpError:
        return []
    found: list[str] = []
    if path in tree.COMMANDS:
        try:
            command = load(path)
        except HcpError:
            return []
        waiting = _open_flag(prog, command, rest)
        if waiting is not None:
            return [choice for choice in waiting.choices if choice.startswith(word) and choice]
        if word.startswith("-"):
            return _flag_words(prog, command, word)
    if not rest:
        prefix = f"{path} " if path else ""
        found = [name for name in tree.children(path) if (prefix + name) not in tree.HIDDEN]
    return sorted(name for name in found if name.startswith(word))


def _open_flag(prog: str, command: Command, rest: list[str]) -> Flag | None:
    """The flag whose value is being typed, if the last full word is one that needs a value."""
    if not rest or not rest[-1].startswith("-") or "=" in rest[-1]:
        return None
    last = rest[-1]
    flag = command.flag(last[2:], prog) if last.startswith("--") else None
    if flag is None:
        flag = next((f for f in command.flags if f.short and last == f"-{f.short}"), None)
    return flag if flag is not None and flag.takes_value else None


def _flag_words(prog: str, command: Command, word: str) -> list[str]:
    name, equals, typed = word.removeprefix("--").partition("=")
    if equals:
        flag = command.flag(name, prog)
        choices = flag.choices if flag else ()
        return [f"--{name}={choice}" for choice in choices if choice and choice.startswith(typed)]
    names = [f"--{flag.name}" for flag in command.flags if not flag.hidden and flag.only in ("", prog)]
    return sorted(name for name in [*names, "--help"] if name.startswith(word))
