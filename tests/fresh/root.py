"""The room's file system: a minimal Debian, the machine's registries, a fresh clone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.fresh.host_config import copy_settings, write_apt, write_certificates

from hcp import payload
from hcp.errors import HcpError
from hcp.oci.writer import read_layout
from hcp.payload.images.bases import ROOM

CLONE = "/root/hcp"


def make_root(root: Path, repository: Path) -> str:
    """Fills `root`; gives the commit that was cloned."""
    base = payload.ensure([ROOM.component])[ROOM.component]
    image = read_layout(base / "image")
    for layer in image.manifest["layers"]:
        _run("tar", "-C", str(root), "--numeric-owner", "-xzpf", str(image.blob(layer["digest"])))
    for folder in ("root", "run", "tmp", "var/tmp", "var/log", "var/cache", "lib/modules"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        (root / folder).chmod(0o1777)
    (root / "etc/hostname").write_text("fresh\n")
    shutil.copyfile("/etc/hosts", root / "etc/hosts")
    with (root / "etc/hosts").open("a") as hosts:
        hosts.write("127.0.0.1 fresh\n")
    copy_settings(root, Path.home())
    write_apt(root, ROOM.suite)
    write_certificates(root)
    _run("git", "clone", "-q", "--depth", "1", repository.as_uri(), f"{root}{CLONE}")
    return _run("git", "-C", f"{root}{CLONE}", "log", "-1", "--format=%h %s")


def uncommitted(repository: Path) -> bool:
    return bool(_run("git", "-C", str(repository), "status", "--porcelain"))


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HcpError(f"{argv[0]} ended with {done.returncode}", cause=done.stderr.strip())
    return done.stdout.strip()
