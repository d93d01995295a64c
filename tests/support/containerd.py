"""A real containerd with its Kubernetes interface, as on a node, in folders of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hcp import payload


@dataclass
class Containerd:
    """A running one; `ctr` is its command line."""

    folder: Path
    programs: Path

    @property
    def environment(self) -> dict[str, str]:
        """In which `ctr` finds this one, by name and without flags."""
        path = f"{self.programs}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "CONTAINERD_ADDRESS": str(self.folder / "socket")}

    def ctr(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "--namespace", "k8s.io", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    def images(self) -> dict[str, str]:
        """Name → labels, as one text."""
        rows = [line.split() for line in self.ctr("images", "ls").stdout.splitlines()[1:]]
        return {row[0]: row[-1] for row in rows}


@contextmanager
def containerd(
    folder: Path,
    settings: Mapping[str, str],
    *,
    inside: tuple[str, ...] = (),
    more_environment: Mapping[str, str] | None = None,
) -> Iterator[Containerd]:
    """`settings`: files that its configuration imports, by name. `inside`: the beginning of a command that runs it in
    another network."""
    folder.mkdir(parents=True)
    for name, text in settings.items():
        (folder / name).write_text(text)
    (folder / "config.toml").write_text(f'version = 3\nimports = ["{folder}/conf-*.toml"]\n')
    programs = payload.ensure(["containerd"])["containerd"] / "bin"
    made = Containerd(folder, programs)
    # In a mount namespace of its own: what it mounts goes with it.
    command: list[str | Path] = [*inside, "unshare", "--mount", "--kill-child", "--fork", programs / "containerd"]
    command += ["--config", folder / "config.toml", "--address", folder / "socket"]
    command += ["--root", folder / "root", "--state", folder / "state"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(more_environment or {})})
    try:
        while made.ctr("version", check=False).returncode:
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield made
    finally:
        process.kill()
        process.wait()
