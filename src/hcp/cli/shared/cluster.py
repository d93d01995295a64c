"""The way from a command to its management cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import note
from hcp.kube import Client, load_config


@asynccontextmanager
async def connect(call: Call, *, impersonate: str = "") -> AsyncIterator[Client]:
    """A client for the cluster that --kubeconfig and --context name."""
    config = load_config(call.text("kubeconfig") or None, call.text("context") or None)
    if impersonate:
        config = replace(config, auth=replace(config.auth, impersonate=impersonate))
    level = call.number("verbose")
    if level:
        note(f"management cluster {config.server}, context {config.context}")
    async with Client(config, observer=_tell if level > 1 else None) as client:
        yield client


def _tell(verb: str, target: str, status: int, seconds: float) -> None:
    note(f"{verb} {target}: {status} in {seconds * 1000:.0f} ms")
