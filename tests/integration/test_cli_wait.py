"""Waiting, through the installed executable: what is shown when, how it ends, and what it costs the API server."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.cli_runner import FREE, Runner, api_server, established, hcp_cli
from tests.support.cli_status import condition, make_ready

from hcp.kube import Client, load_config
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS

__all__ = ["api_server", "hcp_cli"]
HELD = {"metadata": {"finalizers": ["hypershift.openshift.io/finalizer"]}}


class Waiting:
    """A running command whose lines on stderr are read one by one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stderr is not None
        return (await asyncio.wait_for(asyncio.to_thread(self.process.stderr.readline), 300)).rstrip("\n")

    async def line_with(self, text: str) -> str:
        while True:
            line = await self.line()
            if text in line or not line:
                assert text in line, f"ended without {text!r}"
                return line

    async def end(self) -> tuple[int, str]:
        _, err = await asyncio.to_thread(self.process.communicate, timeout=300)
        return self.process.returncode, err


async def report(client: Client, namespace: str, *conditions: dict[str, Any]) -> None:
    body = {"status": {"conditions": list(conditions)}}
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, body, subresource="status")


async def test_each_piece_is_shown_when_it_changes(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "cluster", "demo", "-n", namespace, "--timeout", "120s"))
    pool = "node pool demo: 0 of 2 nodes (waiting)"
    assert await waiting.line() == f"nothing ready yet; release waits (not reported yet); {pool}"
    done = [
        condition("ValidReleaseImage", "True", "AsExpected"),
        condition("InfrastructureReady", "True", "AsExpected"),
    ]
    etcd = condition("EtcdAvailable", "False", "EtcdWaitingForQuorum", "0 of 3 members answer")
    await report(client, namespace, *done, etcd)
    shown = "release, addresses ready; etcd waits (EtcdWaitingForQuorum: 0 of 3 members answer)"
    assert await waiting.line() == f"{shown}; {pool}"
    await make_ready(client, namespace, "demo", nodes=1)
    assert (await waiting.line_with("node pool demo: 1 of 2 nodes")).startswith("control plane available")
    await make_ready(client, namespace, "demo")
    code, err = await waiting.end()
    assert code == 0
    assert err.splitlines()[-1] == "control plane available; node pool demo: 2 of 2 nodes"


async def test_what_waiting_does_not_heal_is_said_once_with_what_to_do(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    hcp_cli.create("demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "nodepool", "demo", "-n", namespace, "--timeout", "120s"))
    await waiting.line_with("0 of 2 nodes")
    dump = "\n".join(
        f"Machine demo-{name}: VMNotReady: 0/1 nodes are available: 1 Insufficient memory. preemption: {'x' * 200}"
        for name in ("a", "b")
    )
    item = condition("AllMachinesReady", "False", "VMNotReady", f"2 of 2 machines are not ready\n{dump}")
    await client.patch(NODEPOOLS, "demo", namespace, {"status": {"conditions": [item]}}, subresource="status")
    assert await waiting.line() == "node pool demo: 0 of 2 nodes (2 no room for it)"
    wrong = await waiting.line()
    assert wrong.startswith("Wrong: machine demo-a: no room for it (0/1 nodes are available: 1 Insufficient memory.")
    assert "ask for less" in wrong
    await make_ready(client, namespace, "demo")
    code, err = await waiting.end()
    assert code == 0
    assert "Wrong" not in err


async def test_nothing_is_asked_while_nothing_happens(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "cluster", "demo", "-n", namespace, "-vv", "--timeout", "20s"))
    await waiting.line_with("nothing ready yet")
    code, err = await waiting.end()
    assert code == 3
    asked = [line for line in err.splitlines() if line.startswith("GET ")]
    # The two watches may still have been on their way; a question every second would be more.
    assert len(asked) <= 2, err


async def test_the_time_is_up(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    release = condition("ValidReleaseImage", "False", "InvalidImage", "manifest unknown")
    await report(client, namespace, release)
    text = hcp_cli.fails("wait", "cluster", "demo", "-n", namespace, "--timeout", "8s", code=3)
    assert f"Error: hosted cluster {namespace}/demo is not ready after 8 s: nothing ready yet; " in text
    assert "release waits (InvalidImage: manifest unknown)" in text
    assert "node pool demo: 0 of 2 nodes" in text
    assert f"hcp wait cluster demo -n {namespace} goes on waiting" in text
    text = hcp_cli.fails("wait", "nodepool", "demo", "-n", namespace, "--for=deleted", "--timeout=8s", code=3)
    assert "is not being deleted" in text


async def test_what_is_there_already_is_not_waited_for(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    await make_ready(client, namespace, "demo")
    assert "\r" not in hcp_cli.ok("wait", "cluster", "demo", "-n", namespace).err
    hcp_cli.ok("wait", "nodepool", "demo", "-n", namespace)
    hcp_cli.fails("wait", "cluster", "nope", "-n", namespace, code=4)
    hcp_cli.ok("wait", "cluster", "nope", "-n", namespace, "--for", "deleted")


async def test_the_control_plane_alone_needs_no_nodes(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    await make_ready(client, namespace, "demo", nodes=0)
    hcp_cli.ok("wait", "cluster", "demo", "-n", namespace, "--control-plane", "--timeout", "300s")


async def test_a_restart_of_the_api_server_is_waited_out(own_server: ApiServer, tmp_path: Path) -> None:
    runner = Runner(own_server.kubeconfig, tmp_path)
    async with Client(load_config(own_server.kubeconfig)) as client:
        await established(client)
        runner.create("demo", "clusters")
        waiting = Waiting(runner.start("wait", "cluster", "demo", "--timeout", "300s"))
        await waiting.line_with("nothing ready yet")
        await asyncio.to_thread(own_server.stop_api, kill=True)
        line = await waiting.line_with("no answer from the management cluster")
        assert "last seen: nothing ready yet" in line
        await asyncio.to_thread(own_server.start_api)
        await waiting.line_with("nothing ready yet")
        await make_ready(client, "clusters", "demo")
        code, err = await waiting.end()
    assert code == 0, err


async def test_a_cluster_that_goes_away_ends_the_wait(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "cluster", "demo", "-n", namespace))
    await waiting.line_with("nothing ready yet")
    await client.delete(HOSTEDCLUSTERS, "demo", namespace)
    code, err = await waiting.end()
    assert code == 4
    assert "is gone: it was deleted meanwhile" in err


async def test_create_can_wait(hcp_cli: Runner, client: Client, namespace: str) -> None:
    words = [*hcp_cli.create_words("demo", namespace), "--wait", "--timeout"]
    text = hcp_cli.fails(*words, "5s", code=3)
    assert "is not ready" in text
    assert "hcp status demo" in text
    hcp_cli.ok("destroy", "cluster", "kubevirt", "--name=demo", "-n", namespace)
    await client.delete(NODEPOOLS, "demo", namespace)
    waiting = Waiting(hcp_cli.start(*words, "120s"))
    await waiting.line_with("nothing ready yet")
    await make_ready(client, namespace, "demo")
    code, err = await waiting.end()
    assert code == 0, err
    assert f"hosted cluster {namespace}/demo is ready" in err


# A background job of a shell cannot hear SIGINT; SIGTERM ends it just as well.
@pytest.mark.parametrize(("deaf", "number"), [(False, signal.SIGINT), (False, signal.SIGTERM), (True, signal.SIGTERM)])
async def test_ctrl_c_says_how_to_go_on(hcp_cli: Runner, namespace: str, deaf: bool, number: signal.Signals) -> None:
    hcp_cli.create("demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "cluster", "demo", "-n", namespace, deaf=deaf))
    await waiting.line_with("nothing ready yet")
    waiting.process.send_signal(number)
    code, err = await waiting.end()
    assert code == 130
    assert err.splitlines() == [
        f"Stopped waiting: hosted cluster {namespace}/demo is not ready yet",
        f"Hint: hcp wait cluster demo -n {namespace} goes on waiting",
        "",
        "Aborted",
    ]


async def test_destroy_shows_what_holds_the_cluster(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, HELD)
    waiting = Waiting(hcp_cli.start("destroy", "cluster", "kubevirt", "--name=demo", "-n", namespace))
    held = f"hosted cluster {namespace}/demo is being deleted, held by hypershift.openshift.io/finalizer"
    assert await waiting.line_with("is being deleted") == held
    await report(
        client, namespace, condition("CloudResourcesDestroyed", "False", "RemainingCloudResources", "1 volume")
    )
    assert await waiting.line() == f"{held}; RemainingCloudResources: 1 volume"
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, FREE)
    code, err = await waiting.end()
    assert code == 0
    assert err.splitlines()[0] == f"hosted cluster {namespace}/demo is gone"
    assert "destroyed hosted cluster" in err


async def test_destroy_can_be_stopped_and_goes_on(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, HELD)
    waiting = Waiting(hcp_cli.start("destroy", "cluster", "kubevirt", "--name=demo", "-n", namespace))
    await waiting.line_with("is being deleted")
    waiting.process.send_signal(signal.SIGINT)
    code, err = await waiting.end()
    assert code == 130
    assert "Hint: the deletion goes on by itself; run the command again" in err
    again = Waiting(hcp_cli.start("destroy", "cluster", "kubevirt", "--name=demo", "-n", namespace))
    await again.line_with("is being deleted")
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, FREE)
    assert (await again.end())[0] == 0


async def test_one_made_anew_under_the_same_name_counts_as_gone(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    hcp_cli.create("demo", namespace)
    pool = await client.get(NODEPOOLS, "demo", namespace)
    waiting = Waiting(hcp_cli.start("wait", "nodepool", "demo", "-n", namespace, "--for=deleted"))
    await waiting.line_with("is not being deleted")
    await client.delete(NODEPOOLS, "demo", namespace)
    meta = {"name": "demo", "namespace": namespace}
    await client.create({**{key: pool[key] for key in ("apiVersion", "kind", "spec")}, "metadata": meta})
    assert (await waiting.end())[0] == 0
