"""The machine's own disk: a distribution's packages as its package manager installs them, and a few files of ours.

Made once and kept below `build/hosts`; machines run on a layer above it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

from tests.hosts import settings
from tests.hosts.distributions import Distribution

from hcp.errors import HcpError
from hcp.payload.rootfs_mirror import sources

UBUNTU = os.environ.get("UBUNTU_ARCHIVE", "http://archive.ubuntu.com/ubuntu")
# Debian 12 has no package with the keys of Ubuntu's archive. By this sum they are believed.
_KEYRING = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
_KEYRING_SUM = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
_SIZE = 40 << 30
# A general initramfs carries all drivers of the world; unpacking that takes an emulated processor a minute.
_INITRAMFS = (
    'mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d" && '
    'echo MODULES=list >"$1/etc/initramfs-tools/conf.d/small" && '
    'printf "%s\\n" virtio_pci virtio_blk ext4 >"$1/usr/share/initramfs-tools/modules.d/small"'
)
_REVISION = 1


def made(found: Distribution, parent: Path) -> Path:
    """A folder with `disk.raw`, `vmlinuz` and `initrd`."""
    text = json.dumps([repr(found), repr(found.packages), settings.FILES, settings.COMMANDS, _INITRAMFS, _REVISION])
    target = parent / f"{found.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if target.is_dir():
        return target
    for former in parent.glob(f"{found.name}-*"):
        shutil.rmtree(former)
    work = parent / f"{found.name}.tmp"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    root = work / "root"
    _install(found, root, work)
    _finish(root)
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        shutil.copyfile(sorted((root / "boot").glob(pattern))[-1], work / name)
    file_system(root, work / "disk.raw", _SIZE, "root")
    shutil.rmtree(root)
    work.rename(target)
    return target


def file_system(content: Path, disk: Path, size: int, label: str) -> None:
    """A sparse file with what the folder holds."""
    with disk.open("wb") as file:
        file.truncate(size)
    _run("mkfs.ext4", "-q", "-F", "-L", label, "-m", "0", "-E", "lazy_itable_init=1", "-d", str(content), str(disk))


def _install(found: Distribution, root: Path, work: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise HcpError("The machine's disk is made by mmdebstrap", hint="apt-get install mmdebstrap")
    lines = _ubuntu_sources(found, work) if found.ubuntu else sources(found.suite)
    _run(
        *("mmdebstrap", "--variant=apt", "--format=directory", f"--include={','.join(found.packages)}"),
        *('--aptopt=Acquire::Retries "5"', "--dpkgopt=path-exclude=/usr/share/man/*"),
        *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"),
        *(f"--essential-hook={_INITRAMFS}", found.suite, str(root), *lines),
    )


def _ubuntu_sources(found: Distribution, work: Path) -> list[str]:
    package = work / "keyring.deb"
    with urllib.request.urlopen(f"{UBUNTU}/{_KEYRING}", timeout=120) as answer:
        package.write_bytes(answer.read())
    if hashlib.sha256(package.read_bytes()).hexdigest() != _KEYRING_SUM:
        raise HcpError(f"{UBUNTU}/{_KEYRING} is not what was published")
    _run("dpkg-deb", "-x", str(package), str(work / "keyring"))
    keys = work / "keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    suites = (found.suite, f"{found.suite}-updates", f"{found.suite}-security")
    return [f"deb [signed-by={keys}] {UBUNTU} {suite} {found.components}" for suite in suites]


def _finish(root: Path) -> None:
    for name, text in settings.FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # a link that leads out of the folder, such as that of systemd-resolved
        path.write_text(text)
    for command in settings.COMMANDS:
        _run("chroot", str(root), *command.split())


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise HcpError(f"{argv[0]} ended with {done.returncode}", cause=(done.stdout + done.stderr).strip()[-2000:])
