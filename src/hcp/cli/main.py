"""Entry points `hcp`, `hypershift` and `oc-mirror`: find the command, read its flags, run it, say what went wrong.

Exit codes: 0 done, 1 an error or a refusal, 3 a wait ran out of time, 4 the named object does not exist, 130 aborted.
"""

from __future__ import annotations

import sys

from hcp.cli import tree
from hcp.cli.engine.command import Command, Flag, UsageError, parse, unknown_flag
from hcp.errors import HcpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ABORTED = 130
HELP_FLAGS = ("-h", "--help")


def hcp() -> int:
    speak_utf8()
    return main("hcp", sys.argv[1:])


def hypershift() -> int:
    speak_utf8()
    return main("hypershift", sys.argv[1:])


def oc_mirror() -> int:
    """`oc-mirror …` and `oc mirror …`, which runs it, are `hcp mirror …`; flags may come before `delete`."""
    speak_utf8()
    words = sys.argv[1:]
    if words[:1] in (["version"], ["--version"], ["-v"]):
        return main("oc-mirror", ["version", "--client-only"])
    for word in ("help", "delete"):
        if word in words:
            words.remove(word)
            words = ["--help", *words] if word == "help" else [word, *words]
    return main("oc", ["mirror", *words])


def speak_utf8() -> None:
    """In a locale of another encoding Python would read and write files in that one; YAML, JSON and names are UTF-8.

    That can only be chosen before Python starts, so it starts once more. Nobody else pays for it.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    import os

    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very program


def main(prog: str, words: Sequence[str]) -> int:
    """Runs one command line; returns its exit code."""
    try:
        code = dispatch(prog, list(words))
        sys.stdout.flush()
        return code
    except HcpError as error:
        from hcp.cli.engine.terminal import report

        report(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nAborted", file=sys.stderr)
        return ABORTED
    except BrokenPipeError:
        # The reader of our output went away (`hcp … | head`): nothing to tell, and nobody to tell it to.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return unexpected(error)


def unexpected(error: Exception) -> int:
    """A mistake of ours, or a machine in trouble: one sentence, and how to see the rest."""
    import os

    if os.environ.get("HCP_TRACEBACK"):
        raise error
    from hcp.cli.engine.terminal import report

    sentence = f"this should not have happened: {type(error).__name__}"
    report(HcpError(sentence, cause=str(error) or None, hint="HCP_TRACEBACK=1 in the environment shows where"))
    return 1


def dispatch(prog: str, words: list[str]) -> int:
    if words[:1] == ["__complete"]:
        from hcp.cli.complete import candidates

        print("\n".join(candidates(prog, words[1:])))
        return 0
    if words == ["--version"]:
        words = ["version", "--client-only"]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    path, early, rest = find(prog, words)
    wants_help = asks_help(rest) or asks_help(early)
    if path not in tree.COMMANDS:
        return _group(prog, path, early, rest, wants_help)
    command = load(path)
    if wants_help:
        from hcp.cli.engine.help import command_help

        print(command_help(prog, command), end="")
        return 0
    call = parse(prog, command, [*early, *rest])
    for flag in command.flags:
        if flag.name in call.given and (flag.deprecated or flag.unused):
            _flag_note(flag)
    return run(command.handler, call)


def _group(prog: str, path: str, early: list[str], rest: list[str], wants_help: bool) -> int:
    """A command line that stops at a group: its help, or which word is wrong."""
    word = next((word for word in rest if word[:1] != "-"), None)
    if word is not None and not wants_help:
        raise unknown_command(prog, path, word)
    if not wants_help and (early or rest):
        raise UsageError(f"{prog} {path}".rstrip() + " needs a command", hint=f"{prog} {path} --help lists them")
    from hcp.cli.engine.help import group_help

    print(group_help(prog, path), end="")
    return 0 if path or wants_help else 1


def find(prog: str, words: list[str]) -> tuple[str, list[str], list[str]]:
    """The deepest command the words name, the flags before its last word, and the words after it."""
    path, early, at = "", [], 0
    while at < len(words):
        word = words[at]
        if word == "--":
            break
        if word[:1] == "-" and len(word) > 1:
            if path in tree.COMMANDS or word in HELP_FLAGS:
                break
            early.append(word)
            if _takes_next(prog, path, word) and at + 1 < len(words):
                at += 1
                early.append(words[at])
        else:
            deeper = f"{path} {word}" if path else word
            if deeper not in tree.COMMANDS and deeper not in tree.GROUPS:
                break
            path = deeper
        at += 1
    return path, early, words[at:]


def _takes_next(prog: str, path: str, word: str) -> bool:
    """Whether a flag in front of the last word of a command eats the word after it."""
    if "=" in word:
        return False
    seen: list[Flag] = []
    for below in tree.COMMANDS:
        if below.startswith(f"{path} ") or not path:
            try:
                command = load(below)
            except HcpError:
                continue
            for flag in command.flags:
                if word in (f"--{flag.name}", f"-{flag.short}"):
                    return flag.takes_value
                seen.append(flag)
    raise unknown_flag(prog, path or "COMMAND", word.lstrip("-"), seen)


def asks_help(words: list[str]) -> bool:
    for word in words:
        if word == "--":
            return False
        if word in HELP_FLAGS:
            return True
    return False


def load(path: str) -> Command:
    """The table of one command; only its own module is imported."""
    module = "hcp.cli." + tree.COMMANDS[path][0]
    try:
        __import__(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise HcpError(f'"{path}" is not part of this build', hint="hcp --help lists the commands") from None
    command: Command = sys.modules[module].COMMAND
    return command


def run(handler: str, call: object) -> int:
    """Imports `module:function` and calls it, in an event loop if it is a coroutine."""
    module, _, function = handler.partition(":")
    __import__(module)
    result = getattr(sys.modules[module], function)(call)
    if hasattr(result, "send"):
        from hcp.cli.engine.loop import run_coroutine

        result = run_coroutine(result)
    return int(result or 0)


def unknown_command(prog: str, path: str, word: str) -> UsageError:
    from difflib import get_close_matches

    where = f"{prog} {path}".rstrip()
    names = tree.children(path)
    close = get_close_matches(word, names, 1)
    hint = f"did you mean {where} {close[0]}?" if close else f"{where} --help lists: {', '.join(names)}"
    return UsageError(f'unknown command "{word}" for "{where}"', hint=hint)


def _flag_note(flag: Flag) -> None:
    from hcp.cli.engine.terminal import note, warn

    if flag.deprecated:
        note(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")
    else:
        warn(f"--{flag.name} has no effect: {flag.unused}")


if __name__ == "__main__":
    sys.exit(hcp())
