"""Writing YAML the way Kubernetes tools do: sorted keys, lists flush with their key, strings quoted only when needed.

Our own because a YAML library costs more to import than the whole rest of a render.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Words that YAML 1.1 readers take for something else than text.
WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".inf", ".nan", "=", "<<"))
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
FIRST = LETTERS | frozenset("0123456789./_($+")
PLAIN = FIRST | frozenset("-@=:,); ")
NUMBER = frozenset("0123456789+-._:eExXabcdefABCDEFoO")
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\x1b": "\\e"}


def dump(value: Any) -> str:
    """One document without a leading or trailing separator."""
    if isinstance(value, (dict, list)) and value:
        lines: list[str] = []
        _block(lines, value, "")
        return "\n".join(lines) + "\n"
    return _scalar(value, "") + "\n"


def _block(lines: list[str], value: Any, indent: str) -> None:
    if isinstance(value, dict):
        for key in sorted(value):
            _entry(lines, f"{indent}{_key(key)}:", value[key], indent)
        return
    for item in value:
        if isinstance(item, (dict, list)) and item:
            start = len(lines)
            _block(lines, item, indent + "  ")
            lines[start] = f"{indent}- {lines[start][len(indent) + 2 :]}"
        else:
            lines.append(f"{indent}- {_scalar(item, indent)}")


def _entry(lines: list[str], head: str, value: Any, indent: str) -> None:
    if isinstance(value, dict) and value:
        lines.append(head)
        _block(lines, value, indent + "  ")
    elif isinstance(value, list) and value:
        lines.append(head)
        _block(lines, value, indent)
    else:
        lines.append(f"{head} {_scalar(value, indent)}")


def _scalar(value: Any, indent: str) -> str:
    if isinstance(value, str):
        return text(value, indent)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return repr(value) if isinstance(value, float) else str(value)


def _key(key: str) -> str:
    return _quote(key) if "\n" in key else text(key, "")


def text(value: str, indent: str) -> str:
    """A string: plain when it cannot be mistaken, else quoted, else as a literal block."""
    if not value:
        return '""'
    if "\n" in value:
        return _literal(value, indent) if _can_be_literal(value) else _quote(value)
    if not value.isprintable() or "\ufeff" in value or mistakable(value):
        return _quote(value)
    if (
        value[0] in FIRST
        and value[-1] not in " :"
        and PLAIN.issuperset(value)
        and ": " not in value
        and value[:3] != "..."
    ):
        return value
    return "'" + value.replace("'", "''") + "'"


def mistakable(value: str) -> bool:
    """Whether a YAML reader would take the plain text for a number, a date, a truth value or nothing."""
    if value.lower() in WORDS or value.lower().lstrip("+-") in (".inf", ".nan"):
        return True
    if value[0] not in "0123456789+-.":
        return False
    if len(value) > 7 and value[:4].isdigit() and value[4] == "-":
        return True
    if not NUMBER.issuperset(value):
        return False
    bare = value.replace("_", "").lstrip("+-")
    if ":" in bare:
        return all(char in "0123456789:." for char in bare)
    try:
        float(bare)
    except ValueError:
        return bare[:2].lower() in ("0x", "0o", "0b") or bare in ("", ".", "-")
    return True


def _can_be_literal(value: str) -> bool:
    if value[0] in " \n\t" or "\t" in value or "\r" in value:
        return False
    return all(line.isprintable() and "\ufeff" not in line for line in value.split("\n")) and " \n" not in value


def _literal(value: str, indent: str) -> str:
    body = value.rstrip("\n")
    ends = len(value) - len(body)
    mark = "|-" if not ends else "|" if ends == 1 else "|+"
    lines = body.split("\n") + [""] * max(ends - 1, 0)
    return "\n".join([mark, *(f"{indent}  {line}" if line else "" for line in lines)])


def _quote(value: str) -> str:
    out = []
    for char in value:
        if char in ESCAPES:
            out.append(ESCAPES[char])
        elif char.isprintable() and char != "\ufeff":
            out.append(char)
        else:
            code = ord(char)
            out.append(f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
    return '"' + "".join(out) + '"'
