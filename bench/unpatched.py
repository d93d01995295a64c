"""The managers of Cluster API as their projects build them: the recipes' modules without the recipes' patches.

Official images hold such programs, and `hosted-secrets` stands before them. Ours ask for Secrets in another way, so
they would show nothing about it. Compiled with the machine's Go into FOLDER, once:

    .venv/bin/python bench/unpatched.py FOLDER
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hcp.payload.versions import component_table, recipe_dir

MANAGERS = ("cluster-api", "cluster-api-kubevirt")


def build(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for component in MANAGERS:
        for command, package in component_table(component)["commands"].items():
            if not (folder / command).exists():
                _compile(component, package, folder.resolve() / command)


def _compile(component: str, package: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / component
        shutil.copytree(recipe_dir(component), source, ignore=shutil.ignore_patterns("*.patch"))
        words = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(target), package]
        subprocess.run(words, cwd=source, env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto"}, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
