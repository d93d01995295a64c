"""`python -m hcp.csi.kubevirt controller|node …`: what the pods of the driver run."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from hcp.errors import HcpError, sentence
from hcp.runtime.logs import setup_logging


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hcp.csi.kubevirt", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    controller = parts.add_parser("controller", help="volumes of one hosted cluster, beside its control plane")
    controller.add_argument("--socket", type=Path, required=True)
    controller.add_argument("--settings", type=Path, required=True, help="what this cluster may use")
    controller.add_argument("--guest-kubeconfig", type=Path, required=True)
    controller.add_argument("--infra-kubeconfig", type=Path, help="the pod's own account when not given")
    controller.add_argument("--health-port", type=int, default=0)
    node = parts.add_parser("node", help="disks and mounts of one node")
    node.add_argument("--node", required=True, help="its name")
    given = parser.parse_args(words)
    setup_logging("info", form="json")
    try:
        return asyncio.run(_until_stopped(_controller(given) if given.part == "controller" else _node(given)))
    except HcpError as error:
        sys.stderr.write(f"{sentence(error)}\n")
        return 1


async def _controller(given: argparse.Namespace) -> None:
    from hcp.csi.kubevirt import controller, settings
    from hcp.kube import Client, load_config

    known = settings.parse(given.settings.read_text())
    async with (
        Client(controller.infra_config(given.infra_kubeconfig)) as infra,
        Client(load_config(given.guest_kubeconfig)) as guest,
    ):
        await controller.serve(infra, guest, known, given.socket, health_port=given.health_port)


async def _node(given: argparse.Namespace) -> None:
    from hcp.csi.kubevirt.node.process import serve

    await serve(given.node)


async def _until_stopped(work: Coroutine[Any, Any, None]) -> int:
    """Being told to stop is no failure."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
