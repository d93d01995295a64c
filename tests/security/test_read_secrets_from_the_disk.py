"""Somebody gets hold of the disk of an embedded cluster: no Secret can be read there; who reads them is known."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from tests.support.api_server import LocalServer
from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.kube.resources import CONFIGMAPS, SECRETS


def _root(server: LocalServer) -> Path:
    (found,) = (server.kubeconfig.parent / "hcp" / "local").glob("test-*")
    return found


def _on_disk(folder: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_copy_of_the_disk_gives_no_secret_away_and_reading_one_leaves_a_trace(
    local_server: LocalServer,
) -> None:
    root, name = _root(local_server), f"s{secrets.token_hex(4)}"
    hidden, open_text = secrets.token_hex(20), secrets.token_hex(20)
    about = {"apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}}
    async with Client(load_config(local_server.kubeconfig)) as client:
        await client.create({**about, "kind": "ConfigMap", "data": {"word": open_text}})
        await client.create({**about, "kind": "Secret", "stringData": {"word": hidden}})
        await client.get(SECRETS, name, "default")
        await client.get(CONFIGMAPS, name, "default")

        async def written() -> bool:
            return _on_disk(root / "data", open_text)

        # That what is not secret can be found shows that the search would find the rest.
        await eventually(written, "the database is on the disk")
        assert not _on_disk(root / "data", hidden)
        key = root / "etc" / "encryption.json"
        assert key.stat().st_mode & 0o077 == 0

        def trace() -> list[tuple[str, str]]:
            log = root / "logs" / "audit.log"
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            return [(e["verb"], e["level"]) for e in events if e.get("objectRef", {}).get("name") == name]

        async def traced() -> list[tuple[str, str]]:
            found = trace()
            return found if {verb for verb, _ in found} >= {"create", "get"} else []

        seen = await eventually(traced, "it is in the log")
        assert {level for _, level in seen} == {"Metadata"}
        assert not _on_disk(root / "logs", hidden)
        # Ordinary reading leaves none: the log stays small.
        assert sum(verb == "get" for verb, _ in seen) == 1
