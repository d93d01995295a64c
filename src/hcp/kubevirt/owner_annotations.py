"""What the owner of a hosted cluster writes on the load balancers that its tenants ask for. Pure.

Which pool an address is from, whether Services share one, what a cloud charges: load balancers are steered by
annotations. A tenant's never leave the guest; those on the HostedCluster go onto every mirrored Service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from hcp.api.names import ANNOTATION_LOAD_BALANCERS

_PART = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_PART}")
# Kubernetes takes 256 KiB on an object; ours are few.
_MOST = 16_384


def wanted(annotations: Mapping[str, str]) -> dict[str, str]:
    """By the HostedCluster's annotations; none while they cannot be read, which `problem` tells."""
    try:
        return _read(annotations.get(ANNOTATION_LOAD_BALANCERS) or "{}")
    except ValueError:
        return {}


def problem(annotations: Mapping[str, str], *, unmanaged: bool = False) -> str:
    """Why they are not followed; empty when they are."""
    text = annotations.get(ANNOTATION_LOAD_BALANCERS) or ""
    if not text:
        return ""
    if unmanaged:
        return f"annotation {ANNOTATION_LOAD_BALANCERS}: machines of your own have no load balancers"
    try:
        _read(text)
    except ValueError as error:
        return f"annotation {ANNOTATION_LOAD_BALANCERS}: {error}"
    return ""


def _read(text: str) -> dict[str, str]:
    if len(text) > _MOST:
        raise ValueError(f"longer than {_MOST} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError('not a JSON object of texts, such as {"metallb.io/address-pool": "tenants"}')
    for key in found:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key[:80]!a} is no name of an annotation")
    return found
