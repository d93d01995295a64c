"""The root of a node's disk as a folder, in which its first boot is run: without a machine, a kernel or a network."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hcp import payload
from hcp.payload.disk_root import finish_root
from hcp.payload.versions import recipe_dir

_RUN = """\
set -eu
mount --bind /proc "$1/proc"
mount --bind /dev "$1/dev"
mount -t tmpfs run "$1/run"
root=$1
shift
exec chroot "$root" "$@"
"""


def make_root(folder: Path) -> Path:
    """Debian, our files on it, Ignition and the boot loader's configuration; none of the large programs."""
    found = payload.find("rootfs-node"), payload.find("ignition")
    assert found[0] is not None and found[1] is not None, "hcp payload build node-disk-1.36"
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-C", root, "--numeric-owner", "-xpf", found[0] / "root.tar"], check=True)
    finish_root(root, recipe_dir("node-disk") / "root")
    shutil.copyfile(found[1] / "bin" / "ignition", root / "usr" / "lib" / "hcp" / "ignition")
    (root / "usr" / "lib" / "hcp" / "ignition").chmod(0o755)
    (root / "boot" / "extlinux").mkdir(parents=True)
    shutil.copyfile(recipe_dir("node-disk") / "extlinux.conf", root / "boot" / "extlinux" / "extlinux.conf")
    return root


def run_in(
    root: Path, *command: str, inside: Sequence[str] = (), seconds: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command in there; `inside`: the beginning of one that changes to another network."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    told = {"PATH": path, "SYSTEMD_OFFLINE": "1", **environment}
    variables = [f"{name}={value}" for name, value in told.items()]
    whole = [*inside, "unshare", "--mount", "--propagation", "private", "sh", "-c", _RUN, "run", str(root)]
    whole += ["env", "-i", *variables, *command]
    return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=seconds)


def first_boot(root: Path, document: str, *, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """The disk's own first boot with this document; in a folder systemctl switches units on and starts none."""
    (root / "config.ign").write_text(document)
    return run_in(
        root, "/usr/lib/hcp/firstboot", inside=inside, IGNITION_PLATFORM="file", IGNITION_CONFIG_FILE="/config.ign"
    )
