"""What a run is asked to do, as the environment of `make conformance` says it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_NAME = "conformance"


@dataclass(frozen=True)
class Options:
    """Names are of an embedded management cluster and of a hosted cluster on it; `kubeconfig` is of a hosted cluster
    that is there already, so that nothing is made and nothing is removed."""

    folder: Path
    name: str = DEFAULT_NAME
    cluster: str = DEFAULT_NAME
    kubeconfig: Path | None = None
    focus: str = ""
    skip: str = ""
    parallel: int = 1
    more: tuple[str, ...] = ()
    """Further words for the suite."""
    keep: bool = False
    resume: bool = False
    """What earlier runs into the same folder passed is not run again, and counts."""
    push: bool = True
    """Put our images into the embedded registry; not for a cluster whose registry we do not know."""
    own_images: bool = True
    """Images made here instead of the ones upstream publishes."""

    @property
    def management(self) -> Path:
        return self.folder / "management.kubeconfig"

    @property
    def guest(self) -> Path:
        return self.kubeconfig or self.folder / "hosted.kubeconfig"

    @property
    def pull_secret(self) -> Path:
        return self.folder / "pull-secret.json"

    @property
    def repo_list(self) -> Path:
        return self.folder / "repositories.yaml"

    @property
    def log(self) -> Path:
        return self.folder / "e2e.log"

    @property
    def passed(self) -> Path:
        """What runs into this folder passed, one after the other."""
        return self.folder / "passed.tsv"

    @property
    def junit(self) -> Path:
        return self.folder / "junit_01.xml"


def options_from(environment: Mapping[str, str], folder: Path) -> Options:
    """Empty variables count as absent: make passes those a person did not set as empty."""
    given = {key: value for key, value in environment.items() if value}
    own_images = given.get("IMAGES", "own") != "upstream"
    kubeconfig = Path(given["KUBECONFIG"]).absolute() if "KUBECONFIG" in given else None
    return Options(
        folder=Path(given.get("RESULTS", str(folder))).absolute(),
        name=given.get("NAME", DEFAULT_NAME),
        cluster=given.get("CLUSTER", DEFAULT_NAME),
        kubeconfig=kubeconfig,
        focus=given.get("FOCUS", ""),
        skip=given.get("SKIP", ""),
        parallel=max(1, int(given.get("PARALLEL", "1"))),
        more=tuple(shlex.split(given.get("ARGS", ""))),
        keep=given.get("KEEP", "0") != "0",
        resume=given.get("RESUME", "0") != "0",
        push=own_images and (kubeconfig is None or "NAME" in given),
        own_images=own_images,
    )
