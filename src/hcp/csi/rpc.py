"""From the description of a service to handlers on a server, and to calls by a client.

An implementation is any object with coroutine methods named like the calls (`CreateVolume` → `create_volume`), each
taking the request and giving the response. A call it does not have is answered with UNIMPLEMENTED.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hcp.csi.errors import code_of
from hcp.csi.wire import csi_pb2, registration_pb2
from hcp.errors import HcpError, sentence

log = logging.getLogger(__name__)

Handler = Callable[[Any], Awaitable[Message]]
# Asked all the time by whoever wants to know whether we live.
_QUIET = ("Probe", "GetPluginInfo", "GetPluginCapabilities", "ControllerGetCapabilities", "NodeGetCapabilities")
# Field of a request → what it is called in the log, where some words are taken.
_SAID = {"volume_id": "volume", "snapshot_id": "snapshot", "name": "called", "node_id": "node"}

IDENTITY: ServiceDescriptor = csi_pb2.DESCRIPTOR.services_by_name["Identity"]
CONTROLLER: ServiceDescriptor = csi_pb2.DESCRIPTOR.services_by_name["Controller"]
NODE: ServiceDescriptor = csi_pb2.DESCRIPTOR.services_by_name["Node"]
GROUP_CONTROLLER: ServiceDescriptor = csi_pb2.DESCRIPTOR.services_by_name["GroupController"]
REGISTRATION: ServiceDescriptor = registration_pb2.DESCRIPTOR.services_by_name["Registration"]
_SERVICES = (IDENTITY, CONTROLLER, NODE, GROUP_CONTROLLER, REGISTRATION)


def handlers(service: ServiceDescriptor, implementation: object) -> grpc.GenericRpcHandler:
    """What a server needs to answer the calls of a service."""
    table = {}
    for method in service.methods:
        found: Handler | None = getattr(implementation, snake(method.name), None)
        if found is not None:
            table[method.name] = grpc.unary_unary_rpc_method_handler(
                _answering(method, found),
                request_deserializer=GetMessageClass(method.input_type).FromString,
                response_serializer=GetMessageClass(method.output_type).SerializeToString,
            )
    return grpc.method_handlers_generic_handler(service.full_name, table)


async def call(channel: grpc.aio.Channel, request: Message, *, within: float | None = None) -> Any:
    """Asks a driver. Every call has a request of its own, so the request says which call it is."""
    for service in _SERVICES:
        for method in service.methods:
            if method.input_type is request.DESCRIPTOR:
                ask = channel.unary_unary(
                    f"/{service.full_name}/{method.name}",
                    request_serializer=GetMessageClass(method.input_type).SerializeToString,
                    response_deserializer=GetMessageClass(method.output_type).FromString,
                )
                return await ask(request, timeout=within)
    raise HcpError(f"{request.DESCRIPTOR.full_name} is the request of no call")


def snake(name: str) -> str:
    """CreateVolume → create_volume"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _answering(method: MethodDescriptor, handler: Handler) -> Callable[..., Awaitable[Message]]:
    async def answer(request: Message, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        started = time.monotonic()
        try:
            response = await handler(request)
        except HcpError as error:
            code, words = code_of(error), sentence(error)
            log.warning(f"{method.name}: {words}", extra={"code": code, **_about(request)})
        except OSError as error:
            code, words = code_of(error), f"{method.name} failed: {error}"
            log.warning(words, extra={"code": code, **_about(request)})
        except Exception as error:
            code, words = "INTERNAL", f"{method.name} failed: {type(error).__name__}"
            log.exception(f"{method.name} failed", extra=_about(request))
        else:
            level = logging.DEBUG if method.name in _QUIET else logging.INFO
            log.log(level, method.name, extra={**_about(request), "seconds": round(time.monotonic() - started, 3)})
            return response
        await context.abort(grpc.StatusCode[code], words)
        raise AssertionError("abort raises")

    return answer


def _about(request: Message) -> dict[str, str]:
    """Which object a request is about; never its secrets."""
    return {
        word: value for key, word in _SAID.items() if isinstance(value := getattr(request, key, None), str) and value
    }
