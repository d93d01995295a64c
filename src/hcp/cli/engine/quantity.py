"""Kubernetes quantities: read any spelling, write the canonical one (8192Mi is 8Gi, 1.5Gi is 1536Mi)."""

from __future__ import annotations

# Everything is counted in billionths, the smallest unit a quantity has.
NANO = 10**9
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
LARGEST = (2**63 - 1) * NANO
DIGITS = "0123456789"
RULE = "a quantity such as 4Gi, 512Mi or 2G"


def canonical(text: str) -> str:
    """The canonical spelling; raises ValueError naming what is allowed."""
    billionths, form = parse(text)
    if form == "binary":
        written = _binary(billionths)
        if written:
            return written
        form = "decimal"
    return _decimal(billionths, form)


def whole(text: str) -> int:
    """The value in whole units, rounded up: bytes for memory and disks."""
    return -(-parse(text)[0] // NANO)


def parse(text: str) -> tuple[int, str]:
    """Billionths, and which family of suffixes it was written with: binary, decimal or exponent."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    cut = 0
    while cut < len(rest) and (rest[cut] in DIGITS or rest[cut] == "."):
        cut += 1
    number, suffix = rest[:cut], rest[cut:]
    before, _, after = number.partition(".")
    if not (before or after) or "." in after:
        raise ValueError(f"needs {RULE}")
    digits = int((before + after) or "0")
    form, scale, power = _suffix(suffix)
    top = digits * scale * NANO
    shift = power - len(after)
    value = top * 10**shift if shift >= 0 else -(-top // 10**-shift)
    value = min(value, LARGEST)
    return (-value if sign == "-" else value), form


def _suffix(suffix: str) -> tuple[str, int, int]:
    if suffix in BINARY:
        return "binary", BINARY[suffix], 0
    if suffix in DECIMAL:
        return "decimal", 1, DECIMAL[suffix]
    if suffix[:1] in ("e", "E"):
        exponent = suffix[1:]
        digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if digits and len(digits) < 4 and all(char in DIGITS for char in digits):
            return "exponent", 1, int(exponent)
    raise ValueError(f"needs {RULE}; {suffix!r} is no unit")


def _binary(billionths: int) -> str:
    """Empty when the value has to be written with decimal suffixes: below 1024 or not whole."""
    units, rest = divmod(billionths, NANO)
    if rest or abs(units) < 1024:
        return ""
    for suffix, size in reversed(BINARY.items()):
        if units % size == 0:
            return f"{units // size}{suffix}"
    return str(units)


def _decimal(billionths: int, form: str) -> str:
    if not billionths:
        return "0"
    power, value = -9, billionths
    while value % 1000 == 0 and power < 18:
        value, power = value // 1000, power + 3
    if form == "exponent":
        return f"{value}e{power}" if power else str(value)
    return str(value) + next(suffix for suffix, found in DECIMAL.items() if found == power)
