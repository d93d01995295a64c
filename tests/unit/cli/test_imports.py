"""Starting must stay cheap: which modules the fast commands may import is pinned here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# What an interpreter with `site` has loaded anyway, plus `re` and its friends, which the installed script imports.
HEAVY = {
    *(
        "argparse",
        "dataclasses",
        "typing",
        "inspect",
        "asyncio",
        "aiohttp",
        "yaml",
        "cryptography",
        "logging",
        "socket",
    ),
    *("ssl", "pathlib", "datetime", "ipaddress", "hashlib", "secrets", "tempfile", "shutil", "subprocess", "difflib"),
}
HELP = {
    "__future__",
    "hcp",
    "hcp.cli",
    "hcp.cli.engine",
    "hcp.cli.engine.command",
    "hcp.cli.engine.help",
    "hcp.cli.engine.values",
    "hcp.cli.main",
    "hcp.cli.tree",
    "hcp.errors",
}
RENDER = (HELP - {"hcp.cli.engine.help"}) | {
    "hcp.api",
    "hcp.api.defaults",
    "hcp.api.names",
    "hcp.cli.create",
    "hcp.cli.create.cluster",
    "hcp.cli.create.cluster.from_flags",
    "hcp.cli.create.cluster.kubevirt",
    "hcp.cli.create.cluster.objects",
    "hcp.cli.create.cluster.run",
    "hcp.cli.create.nodepool",
    "hcp.cli.create.nodepool.flags",
    "hcp.cli.create.nodepool.from_flags",
    "hcp.cli.create.nodepool.objects",
    "hcp.cli.create.options",
    "hcp.cli.engine.common",
    "hcp.cli.engine.files",
    "hcp.cli.engine.grammar",
    "hcp.cli.engine.quantity",
    "hcp.cli.engine.render",
    "hcp.cli.engine.terminal",
    "hcp.cli.engine.yaml_output",
}
PROGRAM = """
import sys
before = set(sys.modules)
sys.argv = ["hcp", *sys.argv[1:]]
from hcp.cli.main import hcp
hcp()
print("MODULES", *sorted(set(sys.modules) - before), file=sys.stderr)
"""


def imported(*words: str) -> set[str]:
    result = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    line = next(line for line in result.stderr.splitlines() if line.startswith("MODULES"))
    return set(line.split()[1:])


@pytest.mark.parametrize("words", [["--help"], ["create", "--help"]])
def test_help_imports_only_its_own(words: list[str]) -> None:
    assert imported(*words) - HELP == set()


def test_render_imports_only_its_own(tmp_path: Path) -> None:
    pull_secret = tmp_path / "ps"
    pull_secret.write_text('{"auths": {}}')
    words = ("create", "cluster", "kubevirt", "--name=demo", f"--pull-secret={pull_secret}", "--render")
    found = imported(*words, "--host-device-name=a", "--toleration=key=a", "--vm-node-selector=a=b", "--memory=6Gi")
    allowed = RENDER | {"binascii", "json", "json.decoder", "json.encoder", "json.scanner", "_json"}
    regex = {name for name in found if name == "re" or name.startswith("re.")}
    shared = regex | {
        "enum",
        "functools",
        "collections",
        "keyword",
        "operator",
        "reprlib",
        "types",
        "copyreg",
        "itertools",
    }
    extra = {name for name in found - allowed - shared if not name.startswith("_")}
    assert extra == set()
    assert not found & HEAVY


def test_completion_and_version_are_light() -> None:
    assert not imported("completion", "bash") & HEAVY
