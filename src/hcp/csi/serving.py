"""A gRPC server on a socket in the file system: how the kubelet and the sidecars reach a driver."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from hcp.csi.rpc import handlers
from hcp.errors import HcpError

log = logging.getLogger(__name__)
_LONGEST_PATH = 107  # bytes that the kernel has for the path of a socket
_OPTIONS = (("grpc.so_reuseport", 0),)


@asynccontextmanager
async def serving(
    socket: Path, services: Mapping[ServiceDescriptor, object], *, grace: float = 5.0
) -> AsyncIterator[Any]:
    """Answers on the socket while the block runs; calls that are going on at its end may take `grace` seconds."""
    if len(str(socket).encode()) > _LONGEST_PATH:
        raise HcpError(f"The path {socket} is too long for a socket", hint=f"At most {_LONGEST_PATH} bytes.")
    _clear(socket)
    server = grpc.aio.server(options=_OPTIONS)
    server.add_generic_rpc_handlers(tuple(handlers(service, thing) for service, thing in services.items()))
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise HcpError(f"There cannot be a socket at {socket}", cause=str(error)) from error
    await server.start()
    log.info("answering", extra={"socket": str(socket), "services": " ".join(s.name for s in services)})
    try:
        yield server
    finally:
        await server.stop(grace)
        _clear(socket)


def _clear(socket: Path) -> None:
    """Room for a socket where that of a killed process may lie."""
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)


def connect(socket: Path) -> grpc.aio.Channel:
    """A channel to a driver's socket, for `rpc.call`; close it."""
    return grpc.aio.insecure_channel(f"unix:{socket}", options=(("grpc.default_authority", "localhost"),))
