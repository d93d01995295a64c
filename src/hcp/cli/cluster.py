"""The way from a command to its management cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hcp.cli.command import Call
from hcp.kube import Client, load_config


@asynccontextmanager
async def connect(call: Call) -> AsyncIterator[Client]:
    """A client for the cluster that --kubeconfig and --context name."""
    log_requests(call)
    config = load_config(call.text("kubeconfig") or None, call.text("context") or None)
    async with Client(config) as client:
        yield client


def log_requests(call: Call) -> None:
    """`-v` shows what the program does, `-vv` every request."""
    level = call.number("verbose")
    if level:
        import logging

        logging.basicConfig(
            level=logging.DEBUG if level > 1 else logging.INFO, format="%(asctime)s %(name)s: %(message)s"
        )
