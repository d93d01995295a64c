"""Resource quantities: enough to know that 1000m is 1 and 1024Mi is 1Gi."""

from __future__ import annotations

import re
from decimal import Decimal

_FORM = re.compile(r"^([+-]?[0-9.]+)(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$")
_SCALE = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def parse(value: object) -> Decimal | None:
    """The number a quantity means, or None if it is none."""
    found = _FORM.fullmatch(str(value))
    if found is None:
        return None
    number, suffix = found.groups()
    try:
        if suffix and suffix[0] in "eE" and suffix not in _SCALE:
            return Decimal(number + suffix)
        return Decimal(number) * _SCALE.get(suffix or "", Decimal(1))
    except ArithmeticError:
        return None


def equal(one: object, other: object) -> bool:
    """Whether two spellings mean the same amount."""
    if one == other:
        return True
    a, b = parse(one), parse(other)
    return a is not None and a == b
