"""The few system calls that Python's library lacks."""

from __future__ import annotations

import ctypes
import os

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
UMOUNT_NOFOLLOW = 8

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    if done != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mounting {kind or source} on {target}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    if _libc.unshare(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"making namespaces: {os.strerror(error)}")


def set_hostname(name: str) -> None:
    if _libc.sethostname(name.encode(), len(name)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def unmount(target: str, flags: int = 0) -> None:
    if _libc.umount2(target.encode(), flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unmounting {target}: {os.strerror(error)}")
