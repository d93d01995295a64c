"""Image references, registry client, mirrors, image writer.

The client pulls in the HTTP library, so it is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp.oci.auth import Auths
from hcp.oci.mirrors import Mirror
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust

if TYPE_CHECKING:
    from hcp.oci.client import Manifest, RegistryClient
    from hcp.oci.pool import RegistryPool

__all__ = ["Auths", "Manifest", "Mirror", "Reference", "RegistryClient", "RegistryPool", "Trust"]


def __getattr__(name: str) -> Any:
    if name in ("Manifest", "RegistryClient"):
        from hcp.oci import client

        return getattr(client, name)
    if name == "RegistryPool":
        from hcp.oci.pool import RegistryPool

        return RegistryPool
    raise AttributeError(name)
