"""A driver on a socket: who it is, what it answers, and how errors reach the caller."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from tests.support.eventually import eventually

from hcp import __version__
from hcp.csi import errors, identity, rpc
from hcp.csi.exclusive import Exclusive
from hcp.csi.kubevirt.node.process import open_once
from hcp.csi.registration import Registration, registration_socket, socket_of_this_boot
from hcp.csi.serving import connect, serving
from hcp.csi.wire import csi_pb2 as csi
from hcp.csi.wire import registration_pb2 as wire
from hcp.errors import HcpError
from hcp.kube import errors as kube

NAME = "disk.example.com"


class Controller:
    """Fails in the way it is told to."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def create_snapshot(self, _request: csi.CreateSnapshotRequest) -> csi.CreateSnapshotResponse:
        raise self.error

    async def delete_volume(self, _request: csi.DeleteVolumeRequest) -> csi.DeleteVolumeResponse:
        raise self.error


async def asked(folder: Path, service: ServiceDescriptor, thing: object, *requests: object) -> list[object]:
    path = folder / "csi.sock"
    async with serving(path, {service: thing}), connect(path) as channel:
        return [await rpc.call(channel, request, within=10) for request in requests]  # type: ignore[arg-type]


async def test_a_driver_says_who_it_is_and_what_it_can(tmp_path: Path) -> None:
    driver = identity.Identity(NAME, (identity.CONTROLLER_SERVICE, identity.ONLINE_EXPANSION))
    info, capabilities, probe = await asked(
        tmp_path,
        rpc.IDENTITY,
        driver,
        csi.GetPluginInfoRequest(),
        csi.GetPluginCapabilitiesRequest(),
        csi.ProbeRequest(),
    )
    assert info == csi.GetPluginInfoResponse(name=NAME, vendor_version=__version__)
    assert capabilities == csi.GetPluginCapabilitiesResponse(
        capabilities=[identity.CONTROLLER_SERVICE, identity.ONLINE_EXPANSION]
    )
    assert isinstance(probe, csi.ProbeResponse)
    assert probe.ready.value


async def test_the_kubelet_is_told_the_drivers_socket(tmp_path: Path) -> None:
    endpoint = Path("/var/lib/kubelet/plugins") / NAME / "csi.sock"
    registration = Registration(NAME, endpoint)
    info, _ = await asked(
        tmp_path,
        rpc.REGISTRATION,
        registration,
        wire.InfoRequest(),
        wire.RegistrationStatus(plugin_registered=True),
    )
    assert info == wire.PluginInfo(type="CSIPlugin", name=NAME, endpoint=str(endpoint), supported_versions=["1.0.0"])
    assert registration.registered.is_set()
    assert registration_socket(NAME, tmp_path) == tmp_path / f"{NAME}-reg.sock"


def test_each_boot_has_a_socket_of_its_own_and_those_of_others_go(tmp_path: Path) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("0f3c2a11-6f0e\n")
    before, other = tmp_path / f"{NAME}-77aa0000-reg.sock", tmp_path / "else.example.com-reg.sock"
    older = registration_socket(NAME, tmp_path)
    for path in (before, older, other):
        path.touch()
    mine = socket_of_this_boot(NAME, tmp_path, boot)
    assert mine == tmp_path / f"{NAME}-0f3c2a11-reg.sock"
    mine.touch()
    assert socket_of_this_boot(NAME, tmp_path, boot) == mine
    assert {path.name for path in tmp_path.glob("*.sock")} == {mine.name, other.name}


async def test_a_port_of_the_node_opens_once_the_kubelet_knows_the_driver() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    known = asyncio.Event()
    async with open_once(known, port):
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        known.set()
        await eventually(lambda: _connects(port), "it is open")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def _connects(port: int) -> bool:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return True


async def test_a_kubelet_that_refuses_ends_the_process_with_its_reason(tmp_path: Path) -> None:
    registration = Registration(NAME, Path("/csi.sock"))
    waiting = asyncio.ensure_future(registration.refused())
    await asked(tmp_path, rpc.REGISTRATION, registration, wire.RegistrationStatus(error="no such version"))
    with pytest.raises(HcpError, match="no such version"):
        await waiting


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (errors.OutOfRange("Too big", hint="At most 1 GiB."), grpc.StatusCode.OUT_OF_RANGE, "Too big. At most 1 GiB."),
        (kube.NotFound("There is no claim", cause="gone"), grpc.StatusCode.NOT_FOUND, "There is no claim: gone"),
        (kube.AlreadyExists("There is one"), grpc.StatusCode.ALREADY_EXISTS, "There is one"),
        (kube.Conflict("Changed"), grpc.StatusCode.ABORTED, "Changed"),
        (kube.Forbidden("Not allowed"), grpc.StatusCode.PERMISSION_DENIED, "Not allowed"),
        (kube.Unreachable("No answer"), grpc.StatusCode.UNAVAILABLE, "No answer"),
        (HcpError("The disk is broken"), grpc.StatusCode.INTERNAL, "The disk is broken"),
        (KeyError("secret"), grpc.StatusCode.INTERNAL, "DeleteVolume failed: KeyError"),
    ],
)
async def test_errors_reach_the_caller_with_their_code_and_sentence(
    tmp_path: Path, error: Exception, code: grpc.StatusCode, words: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asked(tmp_path, rpc.CONTROLLER, Controller(error), csi.DeleteVolumeRequest(volume_id="a"))
    assert (caught.value.code(), caught.value.details()) == (code, words)


async def test_a_call_that_a_driver_lacks_is_unimplemented(tmp_path: Path) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asked(tmp_path, rpc.CONTROLLER, Controller(KeyError()), csi.GetCapacityRequest())
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_secrets_of_a_request_are_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    request = csi.DeleteVolumeRequest(volume_id="vol-1", secrets={"token": "hush"})
    with caplog.at_level(logging.DEBUG, logger="hcp"), pytest.raises(grpc.aio.AioRpcError):
        await asked(tmp_path, rpc.CONTROLLER, Controller(KeyError()), request)
    assert "vol-1" in str([vars(record) for record in caplog.records])
    assert "hush" not in str([vars(record) for record in caplog.records])


async def test_what_a_request_is_about_is_logged_whatever_it_is_called(tmp_path: Path) -> None:
    request = csi.CreateSnapshotRequest(name="of-monday", source_volume_id="vol-1")
    with pytest.raises(grpc.aio.AioRpcError, match="full"):
        await asked(tmp_path, rpc.CONTROLLER, Controller(errors.ResourceExhausted("It is full")), request)


async def test_the_socket_of_a_killed_process_is_replaced_and_ours_is_taken_away(tmp_path: Path) -> None:
    socket = tmp_path / "csi.sock"
    socket.write_text("left over")
    await asked(tmp_path, rpc.IDENTITY, identity.Identity(NAME), csi.ProbeRequest())
    assert not socket.exists()


async def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="too long"):
        async with serving(tmp_path / ("x" * 120), {}):
            pass


async def test_work_on_one_volume_is_done_once_at_a_time_and_to_its_end() -> None:
    exclusive, go_on, done = Exclusive(), asyncio.Event(), []

    async def work(word: str) -> str:
        await go_on.wait()
        done.append(word)
        return word

    caller = asyncio.ensure_future(exclusive.run("a", work("first")))
    await asyncio.sleep(0)
    with pytest.raises(errors.Aborted):
        await exclusive.run("a", work("second"))
    caller.cancel()  # the caller gives up, the work does not
    await asyncio.sleep(0)
    with pytest.raises(errors.Aborted):
        await exclusive.run("a", work("third"))
    go_on.set()
    await exclusive.settled()
    assert done == ["first"]
    assert await exclusive.run("a", work("fourth")) == "fourth"
