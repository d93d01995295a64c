"""A real registry, with or without TLS and passwords."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.support.api_server import free_port, local_opener

from hcp import payload, pki
from hcp.oci.push import Pusher

# The password `secret` of the user `pull`, hashed with few rounds.
HTPASSWD = "pull:$2b$04$znsuV6jlSnaD1vKQ07UAOezDWu0NVBODwqkbIamTyunrmdEwmeroO\n"


def registry_binary() -> Path:
    given = Path(os.environ.get("HCP_TEST_BIN", "/nonexistent")) / "registry"
    return given if given.exists() else payload.ensure(["registry"])["registry"] / "bin" / "registry"


@dataclass
class Registry:
    port: int
    ca_pem: bytes
    address: str = "localhost"

    @property
    def host(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def auths(self) -> dict[str, object]:
        return {"auths": {self.host: self.login}}

    @property
    def login(self) -> dict[str, str]:
        return {"username": "pull", "password": "secret"}


def start(
    directory: Path,
    *,
    passwords: bool,
    port: int = 0,
    tls: bool = True,
    read_only: bool = False,
    deletes: bool = False,
    address: str = "127.0.0.1",
    inside: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
) -> tuple[Registry, subprocess.Popen[bytes]]:
    """`inside`: the beginning of a command that starts it elsewhere, such as in a network namespace. `names`: further
    ones of its certificate."""
    ca = pki.new_ca("registry")
    leaf = pki.issue(ca, "localhost", dns=("localhost", *names), ips=(address,), usage="server")
    (directory / "tls.crt").write_bytes(leaf.cert_pem)
    (directory / "tls.key").write_bytes(leaf.key_pem)
    (directory / "htpasswd").write_text(HTPASSWD)
    port = port or free_port()
    config: dict[str, object] = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
        "http": {
            "addr": f"{address}:{port}",
            "secret": "s",
            "tls": {"certificate": str(directory / "tls.crt"), "key": str(directory / "tls.key")},
        },
    }
    if not tls:
        config["http"] = {"addr": f"{address}:{port}", "secret": "s"}
    if read_only:
        config["storage"] = {
            "filesystem": {"rootdirectory": str(directory / "data")},
            "maintenance": {"readonly": {"enabled": True}},
        }
    if deletes:
        config["storage"] = {"filesystem": {"rootdirectory": str(directory / "data")}, "delete": {"enabled": True}}
    if passwords:
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(directory / "htpasswd")}}
    (directory / "config.yml").write_text(json.dumps(config))
    with (directory / "log").open("ab") as log:
        command: list[str | Path] = [*inside, registry_binary(), "serve", directory / "config.yml"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    made = Registry(port, ca.cert_pem, "localhost" if address == "127.0.0.1" else address)
    ask = local_opener(ssl.create_default_context(cadata=ca.cert_pem.decode()))
    while True:
        assert process.poll() is None, (directory / "log").read_text()
        try:
            with ask.open(f"{'https' if tls else 'http'}://{made.host}/v2/", timeout=5):
                break
        except urllib.error.HTTPError:
            break
        except OSError:
            time.sleep(0.02)
    return made, process


async def push(registry: Registry, layout: Path, repository: str, tag: str) -> str:
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher:
        return await pusher.push(layout, repository, tag=tag)
