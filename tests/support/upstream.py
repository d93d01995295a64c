"""HyperShift's own schema and its test cases, fetched at a pinned version from the Go module proxy.

They are not kept here: what is compared with is what its authors publish.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hcp.payload.store import cache_root

MODULE = "github.com/openshift/hypershift"
VERSION = "v0.1.82"
SUM = "h1:iIzHGjWKSCrAstypC+qZrlEROGFrvsuvo4SL/p9VP38="
_ASSETS = "cmd/install/assets/crds/hypershift-operator"
_SUITES = {
    "hostedclusters": (
        *("capabilities", "dns", "etcd", "monitoring", "networking", "ratcheting"),
        *("secretencryption", "services", "validation"),
    ),
    "nodepools": ("autoscaling", "validation"),
}
"""Suites that do not speak of another platform (aws, azure, gcp, karpenter, kms) or of a gated feature."""


@dataclass(frozen=True)
class Case:
    """One test case as upstream writes it."""

    suite: str
    name: str
    initial: dict[str, Any]
    updated: dict[str, Any] | None = None
    refused: bool = False
    patches: list[dict[str, Any]] = field(default_factory=list)
    """Changes of the definition under which the first object is made: it was valid once."""

    @property
    def id(self) -> str:
        return f"{self.suite}: {self.name}"


def cache() -> Path:
    return cache_root() / "fidelity"


def fetch(folder: Path) -> Path:
    """The folder of the module's source; downloaded once, and refused if it is not what was pinned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module fidelity\n\ngo 1.24\n")
    env = {**os.environ, "GOMODCACHE": str(folder / "mod"), "GOFLAGS": "-mod=mod -modcacherw", "GONOSUMDB": MODULE}
    words = ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    if found["Sum"] != SUM:
        raise ValueError(f"{MODULE} {VERSION} has the sum {found['Sum']}, pinned is {SUM}")
    return Path(found["Dir"])


def cases(source: Path) -> Iterator[Case]:
    for plural, suites in _SUITES.items():
        folder = source / _ASSETS / "tests" / f"{plural}.hypershift.openshift.io"
        for suite in suites:
            text = (folder / f"stable.{plural}.{suite}.testsuite.yaml").read_text()
            tests = yaml.safe_load(text)["tests"]
            for item in (*(tests.get("onCreate") or ()), *(tests.get("onUpdate") or ())):
                yield _case(f"{plural} {suite}", item)


def _case(suite: str, item: dict[str, Any]) -> Case:
    updated = item.get("updated")
    return Case(
        suite,
        item["name"],
        yaml.safe_load(item["initial"]),
        yaml.safe_load(updated) if updated else None,
        refused="expectedError" in item or "expectedStatusError" in item,
        patches=item.get("initialCRDPatches") or [],
    )


def definition(source: Path, plural: str) -> dict[str, Any]:
    """Upstream's CustomResourceDefinition of a kind, with the default set of features."""
    names = {"hostedclusters": "hostedclusters-Hypershift-Default", "nodepools": "nodepools-Default"}
    names["hostedcontrolplanes"] = "hostedcontrolplanes-Hypershift-Default"
    found: dict[str, Any] = yaml.safe_load(
        (source / _ASSETS / "zz_generated.crd-manifests" / f"{names.get(plural, plural)}.crd.yaml").read_text()
    )
    return found
