"""Kernel arguments: what is taken, and the script that writes them, run on files as a disk has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.ignition.document import read_data_url
from hcp.ignition.kernel_arguments import LIST, LONGEST, SCRIPT, kernel_arguments_document, words
from hcp.payload.versions import recipe_dir


def test_entries_may_hold_several_arguments() -> None:
    assert words(["a=1 b", "", "hugepagesz=2M"], "x") == ["a=1", "b", "hugepagesz=2M"]


@pytest.mark.parametrize(
    "bad", ["a\nAPPEND b", 'a="b c"', "it's", "root=/dev/vdb", "init=/bin/sh", "a\tb", "ä", "\0", "x" * 600, 5, None]
)
def test_what_would_leave_its_line_or_its_disk_is_refused(bad: object) -> None:
    with pytest.raises(HcpError, match="kernel argument"):
        words([bad], "x")


def test_all_together_fit_into_a_kernels_line() -> None:
    with pytest.raises(HcpError, match=str(LONGEST)):
        kernel_arguments_document([f"a{number}=1" for number in range(400)])


class Disk:
    """Boot loader, command line and state of a machine, in a folder."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        document = kernel_arguments_document(arguments)
        files = {f["path"]: read_data_url(f["contents"]["source"]).decode() for f in document["storage"]["files"]}
        self.config, self.cmdline, self.state = folder / "extlinux.conf", folder / "cmdline", folder
        self.config.write_text((recipe_dir("node-disk") / "extlinux.conf").read_text())
        (folder / "arguments").write_text(files[LIST])
        programs = folder / "bin"
        programs.mkdir()
        for name in ("systemctl", "sleep", "sync"):
            (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{folder}/calls"\n')
            (programs / name).chmod(0o755)
        self.script = files[SCRIPT]
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HCP_BOOT_CONFIG": str(self.config),
            "HCP_CMDLINE": str(self.cmdline),
            "HCP_ARGUMENTS": str(folder / "arguments"),
            "HCP_STATE": str(folder),
        }
        self.calls = folder / "calls"

    def boot(self, *, obeys: bool = True) -> subprocess.CompletedProcess[str]:
        """Start the kernel as the boot loader says, then run the unit's program."""
        [append] = [line for line in self.config.read_text().splitlines() if "APPEND" in line]
        if obeys or not self.cmdline.exists():
            self.cmdline.write_text(append.partition("APPEND ")[2] + "\n")
        self.calls.write_text("")
        return subprocess.run(
            ["sh", "-c", self.script], env=self.environment, capture_output=True, text=True, check=False
        )


def test_the_machine_restarts_once_and_then_has_them(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ["hugepagesz=2M", "hugepages=4", "mitigations=auto", "a=$x&*\\1"])
    before = disk.config.read_text()
    assert disk.boot().returncode == 0
    assert "systemctl --no-block reboot" in disk.calls.read_text()
    assert disk.config.read_text() == before.rstrip("\n") + " hugepagesz=2M hugepages=4 mitigations=auto a=$x&*\\1\n"
    again = disk.boot()
    assert (again.returncode, disk.calls.read_text()) == (0, "")


def test_a_machine_that_boots_otherwise_fails_and_does_not_restart_for_ever(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ["a=1"])
    assert disk.boot().returncode == 0
    again = disk.boot(obeys=False)
    assert again.returncode == 1 and "without: a=1" in again.stderr
    assert disk.calls.read_text() == ""
    (tmp_path / "kernel-arguments-tried").unlink()
    disk.config.write_text("menuentry other {}\n")
    assert subprocess.run(["sh", "-c", disk.script], env=disk.environment, check=False).returncode == 1
