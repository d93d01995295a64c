"""What the default ingress of a guest is made from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GuestIngress:
    """What it serves, with which image and certificate."""

    domain: str
    image: str
    certificate: bytes
    key: bytes
