"""The Debian bases that images stand on."""

from __future__ import annotations

from hcp.oci.writer import Layer
from hcp.payload.rootfs import RootFs

# Package management has no place in a running container.
_NO_APT = ("usr/share/perl5", "usr/lib/apt", "usr/share/zoneinfo", "usr/lib/systemd", "usr/share/pixmaps")


def _haproxy_only(layer: Layer) -> None:
    """haproxy's packages are unpacked, not installed: keep the program, its libraries and nothing else."""
    for path in list(layer.entries):
        if not path.startswith(_HAPROXY_KEEP):
            layer.entries.pop(path)
    layer.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:65532:65532::/:/sbin/nologin\n")
    layer.file("etc/group", "root:x:0:\nhaproxy:x:65532:\n")
    layer.directory("tmp", mode=0o1777)
    layer.directory("run")
    layer.directory("var/lib/haproxy", uid=65532, gid=65532)


_HAPROXY_KEEP = (
    "lib64",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/sbin/haproxy",
    "usr/share/doc",
    "etc/haproxy",
    "etc/ssl",
)

NET = RootFs(
    "net",
    "bookworm",
    ("iptables", "nftables", "conntrack", "ipset", "iproute2", "kmod", "procps", "ca-certificates"),
    drop=_NO_APT,
)
HAPROXY = RootFs(
    "haproxy",
    "bookworm",
    ("haproxy",),
    variant="extract",
    drop=("usr/lib/x86_64-linux-gnu/perl*", "usr/lib/x86_64-linux-gnu/systemd", "usr/lib/x86_64-linux-gnu/gconv"),
    finish=_haproxy_only,
)
PYTHON = RootFs(
    "python",
    "bookworm",
    ("python3", "haproxy", "ca-certificates", "libpython3.11-stdlib"),
    drop=(*_NO_APT, "usr/share/perl*", "usr/lib/python3/dist-packages/*"),
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
    drop=(*_NO_APT, "usr/share/perl"),
)
ALL = {
    NET: "Debian with iptables, nftables, conntrack and ipset",
    HAPROXY: "HAProxy and its libraries",
    PYTHON: "Debian with Python and HAProxy",
    VIRT: "Debian with libvirt and QEMU",
    CDI: "Debian with qemu-img and nbdkit",
}
