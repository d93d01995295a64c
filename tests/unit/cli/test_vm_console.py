"""The serial console of a node: finding the machine, talking to it over a real socket, and ending well."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web

CONSOLE = "/apis/subresources.kubevirt.io/v1/namespaces/clusters-demo/virtualmachineinstances/{name}/console"


class Cluster:
    """The few answers of a management cluster that the command asks for; the console is the test's own talk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.phase = "Running"
        self.typed = b""
        self.refuse = 0
        self.closed = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        meta = {"name": "demo", "namespace": "clusters"}
        cluster = {"metadata": meta, "spec": {"infraID": "demo-x", "platform": {"type": "KubeVirt", "kubevirt": {}}}}
        machine = {"metadata": {"name": "demo-abc"}, "status": {"printableStatus": "Starting"}}
        path = request.path
        if path.endswith("/hostedclusters"):
            return web.json_response({"metadata": {}, "items": [cluster]})
        if path.endswith("/virtualmachines"):
            assert request.query["labelSelector"] == "hypershift.openshift.io/infra-id=demo-x"
            return web.json_response({"metadata": {}, "items": [machine]})
        if path.endswith("/virtualmachines/demo-abc"):
            return web.json_response(machine)
        if path.endswith("/virtualmachineinstances/demo-abc"):
            return web.json_response({"metadata": {"name": "demo-abc"}, "status": {"phase": self.phase}})
        if path == CONSOLE.format(name="demo-abc"):
            return await self.console(request)
        return web.json_response({"message": f"no {path}"}, status=404)

    async def console(self, request: web.Request) -> web.StreamResponse:
        if self.refuse:
            return web.json_response({"message": "not you"}, status=self.refuse)
        socket = web.WebSocketResponse(protocols=("plain.kubevirt.io",))
        await socket.prepare(request)
        assert socket.ws_protocol == "plain.kubevirt.io"
        await socket.send_bytes(b"boot\r\n")
        async for message in socket:
            assert message.type == WSMsgType.BINARY
            self.typed += message.data
            await socket.send_bytes(b"<" + message.data + b">")
            if message.data == b"bye":
                break
        self.closed.set()
        return socket

    async def start(self, *words: str, **how: Any) -> asyncio.subprocess.Process:
        command = [sys.executable, "-m", "hcp", "vm", "console", *words]
        env = {**os.environ, "KUBECONFIG": str(self.folder / "config"), "HCP_TRACEBACK": "1"}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        return await asyncio.create_subprocess_exec(*command, env=env, **{**pipes, **how})

    async def run(self, *words: str, typed: bytes = b"") -> tuple[int, str, str]:
        process = await self.start(*words)
        out, err = await asyncio.wait_for(process.communicate(typed), 120)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    yield made
    await runner.cleanup()


async def test_a_pipe_types_and_hears_until_it_is_silent(cluster: Cluster) -> None:
    code, out, err = await cluster.run("demo-abc", "--idle", "1s", typed=b"\n")
    assert (code, out, err) == (0, "boot\r\n<\n>", "")
    assert cluster.typed == b"\n"


async def test_the_other_side_can_end_it(cluster: Cluster) -> None:
    process = await cluster.start("demo-abc")
    assert process.stdin is not None
    process.stdin.write(b"bye")
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1
    assert out == b"boot\r\n<bye>"
    assert b"closed from the other side" in err


async def test_a_machine_that_does_not_run_has_no_console(cluster: Cluster) -> None:
    cluster.phase = "Scheduling"
    code, _, err = await cluster.run("demo-abc")
    assert code == 1
    assert "demo-abc is not running" in err
    assert "Starting" in err


@pytest.mark.parametrize(("words", "code"), [(["nobody"], 4), ([], 1)])
async def test_a_wrong_name_or_none_is_answered_with_those_there_are(
    cluster: Cluster, words: list[str], code: int
) -> None:
    got, _, err = await cluster.run(*words)
    assert got == code
    assert "there are: demo-abc" in err


async def test_an_unknown_cluster_is_said(cluster: Cluster) -> None:
    code, _, err = await cluster.run("demo-abc", "--cluster-name", "nope")
    assert code == 4
    assert "no hosted cluster clusters/nope" in err


async def test_a_refusal_is_one_sentence(cluster: Cluster) -> None:
    cluster.refuse = 403
    code, _, err = await cluster.run("demo-abc")
    assert code == 1
    assert "Not allowed to get" in err


@pytest.mark.parametrize("how", ["escape", "signal"])
async def test_on_a_terminal_every_key_goes_through_and_the_terminal_comes_back(cluster: Cluster, how: str) -> None:
    mine, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = await cluster.start("demo-abc", stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
    try:
        await _until(mine, b"boot")
        os.write(mine, b"\x03ls")  # Ctrl-C is for the machine
        await _until(mine, b"ls>")
        if how == "escape":
            os.write(mine, b"\x1d")
        else:
            process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 60)
        assert code == (0 if how == "escape" else 130)
        assert cluster.typed == b"\x03ls"
        assert termios.tcgetattr(theirs) == before
        await asyncio.wait_for(cluster.closed.wait(), 60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        os.close(mine)
        os.close(theirs)


async def _until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        seen += await asyncio.wait_for(asyncio.to_thread(os.read, terminal, 1024), 60)
