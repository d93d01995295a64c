"""Listing kinds that may not be installed."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from hcp.cli.engine.command import Call
from hcp.errors import HcpError
from hcp.kube.errors import NotFound


async def known_kinds(call: Call, listing: Awaitable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The list; a cluster that does not have the kind at all is an error that says what to do."""
    try:
        return await listing
    except NotFound as error:
        raise HcpError(
            "the management cluster does not know hosted clusters",
            cause=error.cause,
            hint=f"install the operator first: {call.prog} install",
        ) from None


async def if_served(listing: Awaitable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The list, or nothing where the kind is not installed."""
    try:
        return await listing
    except NotFound:
        return []
