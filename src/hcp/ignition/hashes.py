"""The short hash that names secrets and machine templates.

The value must equal what the original operator computes, so that annotations and names written by one are
understood by the other: FNV-1a, 32 bit, over Go's ``%v`` text of the value, eight hex digits.
"""

from __future__ import annotations

_OFFSET = 0x811C9DC5
_PRIME = 0x01000193


def fnv32a(data: bytes) -> int:
    """FNV-1a with 32 bits."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return value


def hash_simple(value: str | bytes) -> str:
    """Eight hex digits; text is hashed as it is, bytes the way Go prints a byte slice (``[1 2 3]``)."""
    text = value if isinstance(value, str) else f"[{' '.join(map(str, value))}]"
    return f"{fnv32a(text.encode()):08x}"


def limited_name(base: str, suffix: str, longest: int) -> str:
    """``base-suffix``, shortened with a hash of what was cut so that it never exceeds ``longest``."""
    whole = f"{base}-{suffix}"
    if len(whole) <= longest:
        return whole
    kept = longest - 10 - len(suffix)
    if kept > 0:
        return f"{base[:kept]}-{hash_simple(base)}-{suffix}"
    return f"{base[: longest - 9]}-{hash_simple(whole)}"
