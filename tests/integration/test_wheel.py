"""A wheel in an empty virtual environment is the whole program: all files, the same payloads, a working cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hcp import build_info

REPOSITORY = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
NAME = "wheel"


class Installed:
    """What a person has who was given the wheel and nothing else."""

    def __init__(self, wheel: Path, folder: Path, package: Path) -> None:
        self.wheel = wheel
        self.folder = folder
        # The source it was built from.
        self.package = package
        self.bin = folder / "venv" / "bin"
        home = Path.home()
        # Payloads are those of this machine; clusters and everything else are in a folder of its own.
        cache = os.environ.get("XDG_CACHE_HOME", str(home / ".cache"))
        keep = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self.env = {**keep, "XDG_CACHE_HOME": cache, "XDG_STATE_HOME": str(folder / "state")}
        self.env.pop("KUBECONFIG", None)

    def run(self, *words: str | Path, **more: str) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            env={**self.env, **more},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def hcp(self, *words: str | Path, **more: str) -> str:
        return self.run(self.bin / "hcp", *words, **more)

    def python(self, program: str, **more: str) -> str:
        return self.run(self.bin / "python", "-c", program, **more)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Built from a copy, so that nothing of a former build can be in it and nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        shutil.copy(REPOSITORY / name, source)
    made_by_builds = shutil.ignore_patterns("__pycache__", "*.egg-info", "*_pb2.py", "*_pb2.pyi")
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=made_by_builds)
    if (REPOSITORY / ".git").is_dir():
        (source / ".git").write_text(f"gitdir: {REPOSITORY / '.git'}\n")
    elif (REPOSITORY / ".git").is_file():
        shutil.copy(REPOSITORY / ".git", source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, source], check=True, timeout=600)
    made = Installed(next(folder.glob("hcp-*.whl")), folder, source / "src" / "hcp")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=300)
    made.run(made.bin / "python", "-m", "pip", "--disable-pip-version-check", "-q", "install", made.wheel)
    yield made
    made.hcp("local", "down", "--name", NAME, "--purge")


def test_every_file_of_the_package_is_in_it_and_no_other(installed: Installed) -> None:
    root = installed.package
    ours = {f"hcp/{p.relative_to(root).as_posix()}" for p in root.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    inside = {name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info/" not in name}
    assert inside - {f"hcp/{build_info.COMMIT_FILE}"} == ours


def test_it_says_the_same_version_source_and_commit(installed: Installed) -> None:
    told = installed.hcp("version", "--client-only")
    commit = build_info.commit(installed.package)
    assert f"{build_info.identity(installed.package)} (commit {commit})" in told
    assert installed.hcp("version", "--commit-only").strip() == commit


def test_payloads_built_from_the_source_are_its_own(installed: Installed) -> None:
    program = "from hcp.payload.registry import default_registry as d; r = d(); print({n: r.key(n) for n in r.names()})"
    assert installed.python(program) == installed.python(program, PYTHONPATH=str(installed.package.parent))


def test_it_speaks_the_storage_protocols(installed: Installed) -> None:
    program = "from hcp.csi import rpc, serving; print(rpc.CONTROLLER.full_name, rpc.REGISTRATION.full_name)"
    assert installed.python(program).split() == ["csi.v1.Controller", "pluginregistration.Registration"]


def create(installed: Installed) -> tuple[str | Path, ...]:
    secret = installed.folder / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    words = ("create", "cluster", "kubevirt", "--name", "demo", "--pull-secret", secret, "--node-pool-replicas", "2")
    return (*words, "--release-image", "registry.example.com/release:1")


def test_it_renders_a_cluster(installed: Installed) -> None:
    documents = filter(None, yaml.safe_load_all(installed.hcp(*create(installed), "--render")))
    assert {"HostedCluster", "NodePool"} <= {document["kind"] for document in documents}


def test_it_brings_a_management_api_up_and_creates_a_cluster_there(installed: Installed) -> None:
    installed.hcp("local", "up", "--name", NAME, "--profile", "api")
    config = installed.folder / "kubeconfig"
    config.write_text(installed.hcp("local", "kubeconfig", "--name", NAME))
    installed.hcp("install", "--development", KUBECONFIG=str(config))
    installed.hcp(*create(installed), KUBECONFIG=str(config))
    listed = json.loads(installed.hcp("get", "clusters", "-A", "-o", "json", KUBECONFIG=str(config)))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["demo"]
