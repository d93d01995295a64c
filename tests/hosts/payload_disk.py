"""The second disk: what was built here, and hcp itself with the wheels it stands on. The machine fetches and compiles
nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.hosts.root import file_system
from tests.hosts.settings import CACHE, KEYS, WHEELS

from hcp import payload
from hcp.errors import HcpError
from hcp.local.state import parts
from hcp.payload.published import with_parts
from hcp.payload.store import cache_root

PUSHED = ("image-hcp", "release-1.36")
_ROOM = 2 << 30


def components() -> list[str]:
    """Of an embedded cluster without KubeVirt, the operator, and a release."""
    return sorted({*parts.API, *parts.NODE, *parts.IMAGES, *with_parts(list(PUSHED))})


def make(python: str, key: Path, folder: Path) -> Path:
    """Writes `payload.raw` into the folder. `key` is the public one of who may log in."""
    content = folder / "payload"
    shutil.rmtree(content, ignore_errors=True)
    content.mkdir(parents=True)
    for path in payload.ensure(components()).values():
        _link(path, content / "hcp" / path.relative_to(cache_root()))
    _wheels(python, content / Path(WHEELS).relative_to(CACHE))
    shutil.copyfile(key, content / Path(KEYS).relative_to(CACHE))
    size = sum(path.lstat().st_size for path in content.rglob("*") if path.is_file())
    disk = folder / "payload.raw"
    file_system(content, disk, size + size // 10 + _ROOM, "payload")
    shutil.rmtree(content)
    return disk


def _link(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, symlinks=True, copy_function=os.link)
    except (OSError, shutil.Error):  # the cache is on another disk
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)


def _wheels(python: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    _run("make", "wheel")
    (wheel,) = Path("dist").glob("*.whl")
    shutil.copy(wheel, folder)
    platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("2014", "_2_17", "_2_28")]
    _run(
        *(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:"),
        *(f"--python-version={python}", "--implementation=cp", *platforms, "-d", str(folder), str(wheel)),
    )


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HcpError(f"{' '.join(argv[:3])} ended with {done.returncode}", cause=(done.stdout + done.stderr)[-2000:])
