"""Whether KVM is usable: each way in which it may not be, told in words. The guest's process is a real one."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from hcp.local.host import kvm

USABLE = "flags : fpu vmx sse2\n"


@pytest.fixture
def with_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A device, and a processor that can; the guest is whatever a test writes."""
    (tmp_path / "kvm").touch()
    program = tmp_path / "guest.py"
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm, "processor_flags", lambda: {"vmx"})
    monkeypatch.setattr(kvm, "_PROGRAM", program)
    return program


def test_without_a_device_nothing_is_started(with_device: Path) -> None:
    kvm.DEVICE.unlink()
    assert kvm.probe() == (False, "there is no /dev/kvm")


@pytest.mark.parametrize(("flags", "can"), [(USABLE, True), ("flags : svm\n", True), ("flags : fpu\n", False)])
def test_the_processor_has_to_offer_it(flags: str, can: bool, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nvmx flags : ept\n{flags}bugs : svm\n")
    assert bool({"vmx", "svm"} & kvm.processor_flags(cpuinfo)) == can
    assert kvm.processor_flags(tmp_path / "nothing") == set()


def test_a_device_of_a_processor_without_it_is_told(with_device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "processor_flags", lambda: {"fpu"})
    usable, why = kvm.probe()
    assert not usable and "neither vmx nor svm" in why


@pytest.mark.parametrize(
    ("guest", "usable", "said"),
    [
        ("", True, "64-bit mode ran"),
        ("import os; os.kill(os.getpid(), 4)", False, "ended with signal 4"),
        ("print('ended with exit reason 8'); raise SystemExit(1)", False, "exit reason 8"),
        ("raise SystemExit(1)", False, "a guest cannot be started"),
    ],
)
def test_how_the_guest_ends_is_told(guest: str, usable: bool, said: str, with_device: Path) -> None:
    with_device.write_text(guest)
    found, why = kvm.probe()
    assert found is usable and said in why


def test_a_guest_that_hangs_is_ended(with_device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "_SECONDS", 1)
    with_device.write_text("import signal\nwhile True: signal.pause()")
    usable, why = kvm.probe()
    assert not usable and "does not end" in why


def test_a_device_that_refuses_is_told(with_device: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kvm.main() == 1  # a file knows no virtual machines
    assert "cannot be started" in capsys.readouterr().out


class Kernel:
    """What the guest asks of the kernel, noted; it ends with one exit reason."""

    def __init__(self, reason: int) -> None:
        self.reason = reason
        self.asked: dict[int, bytes] = {}

    def ioctl(self, descriptor: int, request: int, argument: Any = 0) -> int:
        if isinstance(argument, (bytes, bytearray)):
            self.asked[request] = bytes(argument)
        if request == kvm._CREATE_VCPU:
            self.state = os.memfd_create("state")
            os.ftruncate(self.state, 4096)
            return self.state
        if request == kvm._RUN:
            os.pwrite(self.state, struct.pack("<I", self.reason), 8)
        return 4096 if request == kvm._VCPU_SIZE else 0


@pytest.mark.parametrize(("reason", "code"), [(5, 0), (8, 1), (17, 1)])
def test_only_a_guest_that_reaches_its_end_in_64_bit_mode_counts(
    reason: int, code: int, with_device: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = Kernel(reason)
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    assert kvm.main() == code
    assert (f"exit reason {reason}" in capsys.readouterr().out) is bool(code)
    cr0, _, cr3, cr4, _, efer = struct.unpack_from("<QQQQQQ", kernel.asked[kvm._SET_SREGS], 8 * 24 + 2 * 16)
    assert cr0 & 0x80000001 == 0x80000001 and cr4 & 0x20 and efer & 0x500 == 0x500 and cr3 == 0x1000
    assert struct.unpack_from("<Q", kernel.asked[kvm._SET_REGS], 16 * 8) == (0x4000,)
