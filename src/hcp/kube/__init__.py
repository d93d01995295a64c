"""Talking to Kubernetes API servers: many at once, raw dictionaries in and out.

`Client` pulls in the HTTP library, so it is loaded on first use: commands that only need names stay fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp.kube.config import ClusterConfig, load_config
from hcp.kube.resources import Resource, resource_for

if TYPE_CHECKING:
    from hcp.kube.client import Client
    from hcp.kube.pool import ClientPool

__all__ = ["Client", "ClientPool", "ClusterConfig", "Resource", "load_config", "resource_for"]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from hcp.kube.client import Client

        return Client
    if name == "ClientPool":
        from hcp.kube.pool import ClientPool

        return ClientPool
    raise AttributeError(name)
