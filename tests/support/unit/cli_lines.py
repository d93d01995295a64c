"""Running command lines in this process, the way the entry point does, and keeping what they print."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hcp.cli.main import main

# A mistake of ours shall fail a test with its traceback, not be turned into a sentence.
os.environ["HCP_TRACEBACK"] = "1"
PULL_SECRET = '{"auths": {"registry.example.com": {"auth": "dXNlcjpwYXNz"}}}'


class Result(NamedTuple):
    code: int
    out: str
    err: str

    def documents(self) -> list[dict[str, Any]]:
        return [document for document in yaml.safe_load_all(self.out) if document is not None]

    def one(self, kind: str) -> dict[str, Any]:
        return next(document for document in self.documents() if document["kind"] == kind)


def run(*words: str, prog: str = "hcp") -> Result:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(prog, words)
    return Result(code, out.getvalue(), err.getvalue())


def render(folder: Path, *words: str, prog: str = "hcp", name: str = "demo") -> Result:
    """`create cluster kubevirt --render` with the required flags filled in."""
    pull_secret = folder / "pull-secret.json"
    if not pull_secret.exists():
        pull_secret.write_text(PULL_SECRET)
    base = ("create", "cluster", "kubevirt", "--name", name, "--pull-secret", str(pull_secret), "--render")
    return run(*base, *words, prog=prog)
