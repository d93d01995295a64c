"""Whether virtual machines can use the processor's virtualization here: tried out, not guessed.

A device node proves little: in nested or restricted machines it exists and a guest dies at its first instruction, or
the kernel only runs guests that were built for it (PVM: no vmx or svm in the processor's flags). So the flags are
read, and a guest of one page is started in 64-bit mode, where every real one runs, and must reach its `hlt`.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path

DEVICE = Path("/dev/kvm")
_CREATE_VM, _CREATE_VCPU, _RUN = 0xAE01, 0xAE41, 0xAE80
_VCPU_SIZE = 0xAE04
_SET_MEMORY, _SET_REGS = 0x4020AE46, 0x4090AE82
_GET_SREGS, _SET_SREGS = 0x8138AE83, 0x4138AE84
_EXIT_HLT = 5
_PROGRAM = Path(__file__).resolve()
_SECONDS = 5


def probe() -> tuple[bool, str]:
    """(usable, why) in words. The guest runs in a process of its own: a broken KVM may hang or kill it."""
    if not DEVICE.exists():
        return False, "there is no /dev/kvm"
    if not {"vmx", "svm"} & processor_flags():
        return (
            False,
            "/dev/kvm is there, but the processor offers neither vmx nor svm, so ordinary guests cannot run on it",
        )
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_PROGRAM)],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False, "/dev/kvm is there, but a guest of one instruction does not end"
    if done.returncode == 0:
        return True, "a guest in 64-bit mode ran"
    if done.returncode < 0:
        return False, f"/dev/kvm is there, but starting a guest ended with signal {-done.returncode}"
    return False, done.stdout.strip() or "/dev/kvm is there, but a guest cannot be started"


def processor_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> set[str]:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def _guest() -> str:
    """Runs `hlt` in 64-bit mode; empty when the guest got there, otherwise what happened."""
    device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    machine = fcntl.ioctl(device, _CREATE_VM, 0)
    memory = mmap.mmap(-1, 0x10000)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    # Page tables at 0x1000..0x3fff map the first 2 MiB, the code is at 0x4000.
    memory[0x1000:0x1008] = struct.pack("<Q", 0x2003)
    memory[0x2000:0x2008] = struct.pack("<Q", 0x3003)
    memory[0x3000:0x3008] = struct.pack("<Q", 0x83)
    memory[0x4000:0x4001] = b"\xf4"
    fcntl.ioctl(machine, _SET_MEMORY, struct.pack("<IIQQQ", 0, 0, 0, 0x10000, address))
    processor = fcntl.ioctl(machine, _CREATE_VCPU, 0)
    state = mmap.mmap(processor, fcntl.ioctl(device, _VCPU_SIZE, 0))
    special = bytearray(312)
    fcntl.ioctl(processor, _GET_SREGS, special)
    code = struct.pack("<QIHBBBBBBBBBB", 0, 0xFFFFFFFF, 8, 11, 1, 0, 0, 1, 1, 1, 0, 0, 0)
    data = struct.pack("<QIHBBBBBBBBBB", 0, 0xFFFFFFFF, 16, 3, 1, 0, 1, 1, 0, 1, 0, 0, 0)
    special[0:24] = code
    for index in range(1, 6):
        special[24 * index : 24 * index + 24] = data
    cr0 = 0x80050033  # paging, write protect, native errors, protection
    struct.pack_into("<QQQQQQ", special, 8 * 24 + 2 * 16, cr0, 0, 0x1000, 0x20, 0, 0x500)
    fcntl.ioctl(processor, _SET_SREGS, bytes(special))
    registers = bytearray(144)
    struct.pack_into("<Q", registers, 16 * 8, 0x4000)
    struct.pack_into("<Q", registers, 17 * 8, 2)
    fcntl.ioctl(processor, _SET_REGS, bytes(registers))
    fcntl.ioctl(processor, _RUN, 0)
    (reason,) = struct.unpack_from("<I", state, 8)
    return "" if reason == _EXIT_HLT else f"/dev/kvm is there, but a 64-bit guest ended with exit reason {reason}"


def main() -> int:
    try:
        said = _guest()
    except OSError as error:
        said = f"/dev/kvm is there, but a guest cannot be started: {error.strerror}"
    print(said)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
