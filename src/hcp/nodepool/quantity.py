"""Kubernetes quantities: enough to compare and to refuse what no cluster can give."""

from __future__ import annotations

import re
from decimal import Decimal

from hcp.errors import HcpError

_PATTERN = re.compile(
    r"^([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:([eE][+-]?[0-9]+)|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$"
)
_SCALES = {
    "m": Decimal("0.001"),
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


def parse_quantity(value: str | int | float, what: str = "the quantity") -> Decimal:
    """The number a quantity stands for."""
    match = _PATTERN.match(str(value))
    if match is None:
        raise HcpError(f"{what} {value!r} is not a quantity", hint="write it like 8Gi, 500M or 2")
    number, exponent, suffix = match.groups()
    if exponent:
        return Decimal(number + exponent)
    return Decimal(number) * (_SCALES[suffix] if suffix else 1)
