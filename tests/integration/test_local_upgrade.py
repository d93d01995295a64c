"""`hcp local upgrade` on a cluster of profile api: one part is exchanged, what is stored stays, twice is once."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.local_tools import hcp

from hcp import payload
from hcp.kube import Client, load_config
from hcp.kube import resources as k

NAME = "upgraded"
# The API server that is built, behaving as the minor before: what is served, and how it is stored, are that one's.
BEFORE = '#!/bin/sh\nexec {real} "$@" --emulated-version=1.35\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with both minors, as `--from` takes it."""
    found = payload.ensure(["etcd", "kubernetes-1.36"])
    for component, source in (
        ("etcd", found["etcd"]),
        ("kubernetes-1.36", found["kubernetes-1.36"]),
        ("kubernetes-1.35", found["kubernetes-1.36"]),
    ):
        folder = tmp_path / "from" / component / "bin"
        folder.mkdir(parents=True)
        for binary in (source / "bin").iterdir():
            (folder / binary.name).symlink_to(binary)
    script = tmp_path / "from" / "kubernetes-1.35" / "bin" / "kube-apiserver"
    script.unlink()
    script.write_text(BEFORE.format(real=found["kubernetes-1.36"] / "bin" / "kube-apiserver"))
    script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return tmp_path


@pytest.fixture
def env(place: Path) -> Iterator[dict[str, str]]:
    """State and cache of its own: what stands in for the minor before must not be taken for it by anybody else."""
    found = {**os.environ, "XDG_STATE_HOME": str(place / "state"), "XDG_CACHE_HOME": str(place / "cache")}
    found.pop("HCP_TEST_BIN", None)
    try:
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge", check=False, env=found)


def pids(env: dict[str, str]) -> dict[str, int]:
    status = json.loads(hcp("local", "status", "--name", NAME, "-o", "json", env=env).stdout)
    return {line["component"]: line["pid"] for line in status["lines"]}


async def test_a_cluster_moves_one_minor_and_keeps_what_it_stored(place: Path, env: dict[str, str]) -> None:
    source = ("--name", NAME, "--from", str(place / "from"))
    hcp("local", "up", "--profile", "api", "--kubernetes", "1.35", *source, env=env)
    kubeconfig = place / "kubeconfig"
    kubeconfig.write_text(hcp("local", "kubeconfig", "--name", NAME, env=env).stdout)
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    async with Client(load_config(kubeconfig)) as client:
        assert await minor(client) == "35"
        await client.create({**kept, "data": {"a": "b"}})
    before = pids(env)

    refused = hcp("local", "upgrade", "--kubernetes", "1.37", *source, check=False, env=env)
    assert "upgrade to 1.36 first" in refused.stderr
    told = hcp("local", "up", "--kubernetes", "1.36", *source, check=False, env=env)
    assert "hcp local upgrade --kubernetes 1.36" in told.stderr
    assert pids(env) == before

    done = hcp("local", "upgrade", *source, env=env)
    assert "exchanged: kube-apiserver" in done.stdout
    after = pids(env)
    assert {name for name in after if after[name] != before[name]} == {"kube-apiserver"}
    async with Client(load_config(kubeconfig)) as client:
        assert await minor(client) == "36"
        assert (await client.get(k.CONFIGMAPS, "kept", "default"))["data"] == {"a": "b"}

    assert "nothing had to be done" in hcp("local", "upgrade", *source, env=env).stdout
    assert "nothing had to be done" in hcp("local", "up", *source, env=env).stdout
    assert pids(env) == after
    back = hcp("local", "upgrade", "--kubernetes", "1.35", *source, check=False, env=env)
    assert "too new for an older one" in back.stderr

    # It comes back as what it was upgraded to.
    hcp("local", "down", "--name", NAME, env=env)
    refused = hcp("local", "upgrade", *source, check=False, env=env)
    assert "is not up" in refused.stderr
    hcp("local", "up", *source, env=env)
    async with Client(load_config(kubeconfig)) as client:
        assert await minor(client) == "36"


async def minor(client: Client) -> str:
    version = await client.raw("GET", "/version")
    return str(version.get("emulationMinor") or version["minor"])
