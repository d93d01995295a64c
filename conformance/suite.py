"""How the suite is called: which specs, where its images are, how long it may wait. Pure; runs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance import policies
from conformance.options import Options

from hcp.payload.images.conformance import REPOSITORIES, SUITE, conformance_images

PAYLOAD = SUITE
IMAGES = tuple(image.component for image in conformance_images())
# Nodes are emulated: what takes seconds elsewhere takes minutes. The suite knows no flag for how long a single pod
# may take to start (5 minutes), so images are on the nodes before it begins.
_WAITS = {
    "node-schedulable-timeout": "30m",
    "system-pods-startup-timeout": "30m",
    "system-daemonsets-startup-timeout": "30m",
}
_WHOLE_RUN = "6h"
_SPECIAL = set("\\.+*?()|[]{}^$")


def parse_specs(text: str) -> list[str]:
    """Names of specs, one per line; empty lines and lines that begin with `#` are for readers."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def focus_of(names: Iterable[str]) -> str:
    """An expression that matches exactly these specs. A name may begin another one's, so the end counts."""
    return "|".join(f"{literal(name)}$" for name in names)


def literal(text: str) -> str:
    """The text as an expression of Go, which unlike Python leaves blanks and quotes alone."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)


def repo_list() -> dict[str, str]:
    """Which registries the suite's images come from, in the suite's own words; all others stay as they are."""
    return {"promoterE2eRegistry": REPOSITORIES, "gcRegistry": REPOSITORIES}


def references() -> dict[str, str]:
    """Name → how a pod of the suite names the image."""
    return {image.name: f"{REPOSITORIES}/{image.name}:{image.tag}" for image in conformance_images()}


def suite_environment(options: Options) -> dict[str, str]:
    """The suite reads the list before its flags, while it makes up its specs."""
    return {"KUBE_TEST_REPO_LIST": str(options.repo_list)} if options.own_images else {}


def suite_argv(
    options: Options, focus: str, programs: Path, kubectl: Path, *, dry: bool = False, passed: Iterable[str] = ()
) -> list[str]:
    """The suite itself, or its runner where several specs run at once. What has `passed` is left out."""
    ginkgo = {"focus": focus, "timeout": _WHOLE_RUN, "no-color": "true", "v": "true"}
    flags = {
        "kubeconfig": str(options.guest),
        "provider": "skeleton",
        "kubectl-path": str(kubectl),
        "report-dir": str(options.folder),
        "e2e-output-dir": str(options.folder),
        "disable-log-dump": "true",
        **_WAITS,
    }
    # With the runner only its own flags are ginkgo's: what ARGS holds goes to the suite.
    skip = options.skip or (policies.SKIPPED if policies.wanted(options.focus) else "")
    if left_out := "|".join(word for word in (skip, focus_of(passed)) if word):
        ginkgo["skip"] = left_out
    if dry:
        ginkgo["dry-run"] = "true"
    ours = [*(f"--{key}={value}" for key, value in flags.items()), *options.more]
    suite = str(programs / "e2e.test")
    if options.parallel > 1:
        runner = [f"--{key}={value}" for key, value in ginkgo.items()]
        return [str(programs / "ginkgo"), f"--procs={options.parallel}", *runner, suite, "--", *ours]
    return [suite, *(f"--ginkgo.{key}={value}" for key, value in ginkgo.items()), *ours]
