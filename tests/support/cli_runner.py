"""Running the installed `hcp` executable, as a user would, against the test API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.support import crds
from tests.support.api_server import LocalServer

import hcp.api
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS

IMAGE = "registry.example.com/release:1.36.3"
BIN = Path(sys.executable).parent
CRD_FILES = sorted((Path(hcp.api.__file__).parent / "crds").glob("*.yaml"))
FREE = {"metadata": {"finalizers": None}}


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Runner:
    """`hcp` with KUBECONFIG set and a home of its own."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        self.pull_secret = folder / "pull-secret.json"
        self.pull_secret.write_text('{"auths": {}}')
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "HCP_TRACEBACK": "1",
        }

    def start(
        self, *words: str, prog: str = "hcp", deaf: bool = False, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """As a shell starts it: hearing Ctrl-C, whoever started the tests, or deaf, as its background jobs are."""
        hearing = f"--{'ignore' if deaf else 'default'}-signal=INT"
        return subprocess.Popen(
            ["env", hearing, str(BIN / prog), *words],
            env=self.env | (env or {}),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words: str, prog: str = "hcp", env: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [str(BIN / prog), *words],
            env=self.env | (env or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, prog: str = "hcp") -> Result:
        result = self.run(*words, prog=prog)
        assert result.code == 0, result.err
        return result

    def fails(self, *words: str, code: int = 1) -> str:
        result = self.run(*words)
        assert result.code == code, (result.code, result.out, result.err)
        assert result.err.count("Error: ") == 1, result.err
        return result.err

    def create(self, name: str, namespace: str, *words: str) -> Result:
        return self.ok(*self.create_words(name, namespace), *words)

    def create_words(self, name: str, namespace: str) -> list[str]:
        base = ["create", "cluster", "kubevirt", "--name", name, "--namespace", namespace]
        return [*base, "--pull-secret", str(self.pull_secret), "--release-image", IMAGE, "--node-pool-replicas", "2"]

    def json(self, *words: str) -> Any:
        return json.loads(self.ok(*words, "-o", "json").out)


async def established(client: Client) -> None:
    """Our own kinds on the server; applying them again changes nothing."""
    listed = [crd for file in CRD_FILES for crd in yaml.safe_load_all(file.read_text())]
    await crds.install(client, listed)


@pytest.fixture
def api_server(local_server: LocalServer) -> Path:
    """In modules that import it, everything happens on the cluster of `hcp local up --profile api`."""
    return local_server.kubeconfig


@pytest.fixture
async def hcp_cli(api_server: Path, client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[Runner]:
    """The executable; hosted clusters made in the test's namespace (or one named after it) are removed afterwards."""
    await established(client)
    yield Runner(api_server, tmp_path)
    # Names are unique in a whole cluster: leave none behind.
    for resource in (NODEPOOLS, HOSTEDCLUSTERS):
        for obj in await client.list(resource):
            if not obj["metadata"]["namespace"].startswith(namespace):
                continue
            await client.patch(resource, obj["metadata"]["name"], obj["metadata"]["namespace"], FREE)
            await client.delete(resource, obj["metadata"]["name"], obj["metadata"]["namespace"], missing_ok=True)
