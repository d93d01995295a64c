"""Reading single flag values: the text rules of Go's flag library, without its words.

Every reader takes the text as typed and raises ValueError saying what is allowed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TRUE = ("1", "t", "T", "TRUE", "true", "True")
FALSE = ("0", "f", "F", "FALSE", "false", "False")

# Nanoseconds of each unit, as Go's duration text has them.
UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
INT64 = 2**63
_DURATION_RULE = "a duration such as 30s, 5m or 1h30m"
ASCII_DIGITS = "0123456789"


def boolean(text: str) -> bool:
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError("allowed: true or false")


def integer(text: str, low: int, high: int) -> int:
    """A whole number as Go reads it with base 0: 16, 0x10, 0o20, 020, 0b10000, 1_000."""
    rule = f"a whole number from {low} to {high}"
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not digits.isascii() or digits[0] not in ASCII_DIGITS or digits != digits.strip():
        raise ValueError(f"needs {rule}")
    old_octal = len(digits) > 1 and digits[0] == "0" and (digits[1] in ASCII_DIGITS or digits[1] == "_")
    try:
        value = int(digits[1:].removeprefix("_"), 8) if old_octal else int(digits, 0)
    except ValueError:
        raise ValueError(f"needs {rule}") from None
    if text[0] == "-":
        value = -value
    if not low <= value <= high:
        raise ValueError(f"out of range, needs {rule}")
    return value


def int32(text: str) -> int:
    return integer(text, -(2**31), 2**31 - 1)


def uint32(text: str) -> int:
    if text[:1] in ("-", "+"):
        raise ValueError(f"needs a whole number from 0 to {2**32 - 1}")
    return integer(text, 0, 2**32 - 1)


def int64(text: str) -> int:
    return integer(text, -INT64, INT64 - 1)


def count(text: str) -> int:
    """How often a switch was given; `-v=3` names the number."""
    return 1 if text == "true" else integer(text, 0, 9)


def duration(text: str) -> int:
    """Nanoseconds of a Go duration."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f"needs {_DURATION_RULE}")
    total = 0
    while rest:
        cut = 0
        while cut < len(rest) and (rest[cut] in ASCII_DIGITS or rest[cut] == "."):
            cut += 1
        number, rest = rest[:cut], rest[cut:]
        unit = next((u for u in ("ns", "us", "µs", "μs", "ms", "s", "m", "h") if rest.startswith(u)), "")
        whole, _, part = number.partition(".")
        if not unit or not (whole or part) or "." in part:
            missing = "no unit" if number and not rest else f"{text!r} cannot be read"
            raise ValueError(f"{missing}, needs {_DURATION_RULE}")
        rest = rest[len(unit) :]
        total += int(whole or "0") * UNITS[unit]
        if part:
            total += int(part) * UNITS[unit] // 10 ** len(part)
        if total >= INT64:
            raise ValueError("longer than 292 years")
    return -total if text[0] == "-" else total


def waiting_time(text: str) -> int:
    """A duration that is not negative: no flag means anything by less than no time."""
    found = duration(text)
    if found < 0:
        raise ValueError(f"it is below 0, needs {_DURATION_RULE}")
    return found


def format_duration(nanoseconds: int) -> str:
    """The duration as Go prints it: 0s, 1.5s, 5m0s, 1h30m0s, 300ms."""
    if not nanoseconds:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < UNITS["s"]:
        unit = "ms" if rest >= UNITS["ms"] else "µs" if rest >= UNITS["us"] else "ns"
        return sign + _decimal(rest, UNITS[unit]) + unit
    hours, rest = divmod(rest, UNITS["h"])
    minutes, rest = divmod(rest, UNITS["m"])
    seconds = _decimal(rest, UNITS["s"]) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    return f"{whole}.{str(part).zfill(len(str(unit)) - 1).rstrip('0')}"


def csv_cells(text: str) -> list[str]:
    """One comma separated record with double quotes as CSV has them."""
    if '"' not in text:
        if "\n" in text or "\r" in text:
            raise ValueError("needs one line of comma separated values")
        return text.split(",") if text else []
    cells = []
    rest = text
    while True:
        if rest.startswith('"'):
            cell, rest = _quoted(rest)
        else:
            cell, comma, tail = rest.partition(",")
            if '"' in cell:
                raise ValueError("a double quote may only enclose a whole value, written as CSV")
            rest = comma + tail
        cells.append(cell)
        if not rest:
            return cells
        rest = rest[1:]


def _quoted(text: str) -> tuple[str, str]:
    cell, at = "", 1
    while True:
        end = text.find('"', at)
        if end < 0:
            raise ValueError("a double quote is not closed")
        cell += text[at:end]
        if text[end + 1 : end + 2] == '"':
            cell, at = cell + '"', end + 2
            continue
        rest = text[end + 1 :]
        if rest and rest[0] != ",":
            raise ValueError("a double quote may only enclose a whole value, written as CSV")
        return cell, rest


def pairs(text: str) -> dict[str, str]:
    """`k=v,k2=v2`; with a single equals sign in it the text is one pair and commas belong to the value."""
    equals = text.count("=")
    if not equals:
        raise ValueError(f"{text} must be formatted as key=value")
    cells = [text.strip('"')] if equals == 1 else csv_cells(text)
    found = {}
    for cell in cells:
        key, sign, value = cell.partition("=")
        if not sign:
            raise ValueError(f"{cell} must be formatted as key=value")
        found[key] = value
    return found


def _one(text: str) -> list[str]:
    return [text]


READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "bool": boolean,
    "int": int64,
    "int32": int32,
    "uint32": uint32,
    "count": count,
    "duration": waiting_time,
    "stringArray": _one,
    "stringSlice": csv_cells,
    "stringToString": pairs,
}

ZERO: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int": 0,
    "int32": 0,
    "uint32": 0,
    "count": 0,
    "duration": 0,
    "stringArray": (),
    "stringSlice": (),
    "stringToString": {},
}
