"""The Debian bases that images stand on."""

from __future__ import annotations

from hcp.linux import protocols
from hcp.oci.writer import Layer
from hcp.payload.rootfs import RootFs

# Package management has no place in a running container.
_NO_APT = ("usr/share/perl5", "usr/lib/apt", "usr/lib/systemd", "usr/share/pixmaps")
_NO_ZONES = "usr/share/zoneinfo"


_LIBRARIES = ("lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/share/doc")
_NO_LIBRARIES = (
    "usr/lib/x86_64-linux-gnu/perl*",
    "usr/lib/x86_64-linux-gnu/systemd",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/security",
)
_PASSWD = "root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532::/:/sbin/nologin\n"
_GROUP = "root:x:0:\nnonroot:x:65532:\n"


def _only(layer: Layer, *programs: str) -> None:
    """Packages were unpacked, not installed: of all they need, keep the named programs and the libraries."""
    for path in list(layer.entries):
        if not path.startswith(_LIBRARIES) and not any(
            path == name or path.startswith(f"{name}/") for name in programs
        ):
            layer.entries.pop(path)
    layer.file("etc/passwd", _PASSWD)
    layer.file("etc/group", _GROUP)
    layer.directory("tmp", mode=0o1777)
    for path in ("run", "dev", "proc", "sys"):
        layer.directory(path)


def _haproxy_only(layer: Layer) -> None:
    _only(layer, "usr/sbin/haproxy", "etc/haproxy", "etc/ssl")
    layer.directory("var/lib/haproxy", uid=65532, gid=65532)


def _net_only(layer: Layer) -> None:
    """Nodes pull this while they start, so every megabyte counts: busybox instead of Debian's own tools."""
    _only(layer, *_NET_PROGRAMS)
    for family in ("iptables", "ip6tables"):
        for suffix in ("", "-save", "-restore"):
            layer.symlink(f"usr/sbin/{family}{suffix}", "xtables-nft-multi")
    for name in BUSYBOX:
        layer.symlink(f"bin/{name}", "busybox")
    layer.file(protocols.PATH, protocols.TEXT)


def _tests_only(layer: Layer) -> None:
    """What the scripts of the Kubernetes project's specs call; busybox for everything of a shell's daily life."""
    _only(layer, *_TEST_PROGRAMS)
    layer.file("etc/nsswitch.conf", "hosts: files dns\n")
    for name in (*BUSYBOX, *_TESTS_TOO):
        if f"bin/{name}" not in layer.entries and name not in ("nc", "nslookup", "sh"):
            layer.symlink(f"bin/{name}", "busybox")
    layer.symlink("bin/nc", "nc.openbsd")
    layer.symlink("bin/sh", "dash")  # busybox's own shell takes its own nc, whatever the path says


_TEST_PROGRAMS = (
    # Specs of storage write past the page cache (oflag=nocache), which busybox's dd cannot.
    *("bin/busybox", "bin/dash", "bin/dd", "bin/ip", "bin/ss", "bin/nc.openbsd"),
    *("usr/bin/curl", "usr/bin/dig", "usr/bin/getent"),
)
_TESTS_TOO = ("base64", "blockdev", "sha256sum")
_NET_PROGRAMS = (
    "bin/busybox",
    "bin/ip",
    "bin/kmod",
    "sbin/ip",
    "sbin/modprobe",
    "sbin/lsmod",
    "sbin/tc",
    "sbin/bridge",
    "usr/sbin/conntrack",
    "usr/sbin/ipset",
    "usr/sbin/nft",
    "usr/sbin/xtables-legacy-multi",
    "usr/sbin/xtables-nft-multi",
)
BUSYBOX = (
    *("ash", "awk", "basename", "cat", "chgrp", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du"),
    *("echo", "env", "false", "find", "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv"),
    *("nc", "nslookup", "ping", "printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort"),
    *("stat", "sync", "tail", "tar", "test", "touch", "tr", "true", "uname", "wc", "wget", "xargs"),
)

NET = RootFs(
    "net",
    "bookworm",
    ("iptables", "nftables", "conntrack", "ipset", "iproute2", "kmod", "busybox-static"),
    variant="extract",
    drop=_NO_LIBRARIES,
    finish=_net_only,
    revision=3,
)
HAPROXY = RootFs(
    "haproxy", "bookworm", ("haproxy",), variant="extract", drop=_NO_LIBRARIES, finish=_haproxy_only, revision=2
)
PYTHON = RootFs(
    "python",
    "bookworm",
    ("python3", "haproxy", "ca-certificates", "libpython3.11-stdlib", "tzdata"),
    # Schedules are read in time zones of their owners; once is enough.
    drop=(
        *_NO_APT,
        *_NO_LIBRARIES,
        f"{_NO_ZONES}/posix",
        f"{_NO_ZONES}/right",
        "usr/share/perl*",
        "usr/lib/python3/dist-packages/*",
    ),
)
# libvirt and QEMU for virt-launcher and virt-handler. Trixie: its QEMU 10 and libvirt 11 are what KubeVirt 1.7 expects.
VIRT = RootFs(
    "virt",
    "trixie",
    (
        "libvirt-daemon",
        "libvirt-daemon-driver-qemu",
        "libvirt-daemon-log",
        "libvirt-clients",
        "qemu-system-x86",
        "qemu-utils",
        "qemu-block-extra",
        "seabios",
        "ipxe-qemu",
        "xorriso",
        "nftables",
        "iproute2",
        "iptables",
        "procps",
        "ethtool",
        "tar",
        "util-linux",
        "mount",
        "ca-certificates",
    ),
    drop=(
        *_NO_APT,
        _NO_ZONES,
        "usr/share/qemu/*edk2*",
        "usr/share/qemu/*.img.zst",
        "usr/share/perl",
        "usr/share/icons",
        "usr/share/mime",
    ),
)
CDI = RootFs(
    "cdi",
    "bookworm",
    (
        "qemu-utils",
        "nbdkit",
        "curl",
        "ca-certificates",
        "tar",
        "gzip",
        "xz-utils",
        "zstd",
        "util-linux",
        "mount",
        "e2fsprogs",
        "procps",
    ),
    drop=(*_NO_APT, _NO_ZONES, "usr/share/perl"),
)
# For the images of the Kubernetes project's specs. They ask for a C library of the GNU kind and for dig, curl and nc.
TESTS = RootFs(
    "tests",
    "bookworm",
    ("busybox-static", "dash", "coreutils", "bind9-dnsutils", "curl", "netcat-openbsd", "iproute2", "libc-bin"),
    variant="extract",
    drop=_NO_LIBRARIES,
    finish=_tests_only,
    revision=3,
)
# What a new user's machine has: the room of `make test-fresh`.
ROOM = RootFs("room", "bookworm", ("python3", "python3-venv", "git", "ca-certificates", "make"), variant="apt")
ALL = {
    NET: "iptables, nftables, conntrack, ipset and a shell",
    HAPROXY: "HAProxy and its libraries",
    PYTHON: "Debian with Python and HAProxy",
    VIRT: "Debian with libvirt and QEMU",
    CDI: "Debian with qemu-img and nbdkit",
}
