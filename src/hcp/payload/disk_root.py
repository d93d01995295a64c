"""What is on a node's disk besides our binaries: Debian packages, the kernel, units that are on and off."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from hcp.oci.writer_layer import dropped
from hcp.payload.context import BuildContext
from hcp.payload.rootfs import debootstrap

KERNEL = "linux-image-cloud-amd64"
XFS = "xfsprogs"
# Of that package what makes, mends and grows a file system, and the libraries of those. Its other programs need Python
# and tables of all the letters of the world.
XFS_FILES = (
    "sbin/mkfs.xfs",
    "sbin/xfs_repair",
    "usr/sbin/xfs_growfs",
    "usr/lib/*-linux-gnu/libinih.so.*",
    "usr/lib/*-linux-gnu/liburcu*.so.8*",
    "usr/share/doc/xfsprogs/copyright",
    "usr/share/doc/libinih1/copyright",
    "usr/share/doc/liburcu8/copyright",
)
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "systemd-resolved",
    "udev",
    "dbus",
    "passwd",
    "iproute2",
    "iptables",
    "nftables",
    "ipset",
    "conntrack",
    "ethtool",
    "socat",
    "kmod",
    "procps",
    "mount",
    "util-linux",
    "util-linux-extra",
    "fdisk",
    "e2fsprogs",
    "ca-certificates",
    "libseccomp2",
    "libblkid1",
    "openssh-server",
    "sudo",
)
ENABLED = {
    "sysinit.target": ("hcp-hostname.service",),
    "multi-user.target": (
        "containerd.service",
        "hcp-firstboot.service",
        "hcp-growroot.service",
        "hcp-powerbutton.service",
        "systemd-networkd.service",
    ),
    "sockets.target": ("ssh.socket",),
    "network-online.target": ("systemd-networkd-wait-online.service",),
}
MASKED = (
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
    "ssh.service",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "dpkg-db-backup.timer",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "systemd-pstore.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-timesyncd.service",
    "systemd-rfkill.socket",
    "systemd-binfmt.service",
    "systemd-ask-password-wall.path",
    "systemd-ask-password-console.path",
    "systemd-logind.service",
    "systemd-sysusers.service",
    "systemd-journal-flush.service",
    "systemd-random-seed.service",
    "systemd-update-done.service",
    "systemd-hwdb-update.service",
    "systemd-firstboot.service",
    "systemd-tmpfiles-clean.timer",
    "ldconfig.service",
    "modprobe@configfs.service",
    "modprobe@drm.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "dev-hugepages.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "sys-fs-fuse-connections.mount",
    "proc-sys-fs-binfmt_misc.automount",
)
# udev reads every rule for every device; a VM has no sound cards, cameras, mice or seats.
RULES_OFF = (
    "60-autosuspend*",
    "60-evdev*",
    "60-fido-id*",
    "60-infiniband*",
    "60-input-id*",
    "60-persistent-alsa*",
    "60-persistent-input*",
    "60-persistent-storage-tape*",
    "60-persistent-v4l*",
    "60-sensor*",
    "64-btrfs*",
    "70-camera*",
    "70-joystick*",
    "70-memory*",
    "70-mouse*",
    "70-power-switch*",
    "70-touchpad*",
    "70-uaccess*",
    "71-seat*",
    "73-seat*",
    "75-probe_mtd*",
    "78-sound-card*",
    "90-vconsole*",
)
# Each generator runs at boot and at every reload; a node has no encrypted disks, no GPT, no SysV scripts.
GENERATORS_OFF = (
    "systemd-bless-boot-generator",
    "systemd-cryptsetup-generator",
    "systemd-debug-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-integritysetup-generator",
    "systemd-rc-local-generator",
    "systemd-run-generator",
    "systemd-system-update-generator",
    "systemd-sysv-generator",
    "systemd-veritysetup-generator",
)
UNUSED = (
    "usr/share/doc/*/[!c]*",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bash-completion",
    "usr/share/zoneinfo/right",
    "usr/share/zoneinfo/posix",
    "usr/share/perl5",
    "usr/lib/udev/hwdb.d",
    "var/cache/*",
    "var/log/*",
    "var/lib/apt/lists/*",
    "etc/ssh/ssh_host_*",
    "etc/machine-id",
    "etc/hostname",
    "etc/resolv.conf",
    "var/lib/dbus/machine-id",
    "boot/*",
)
# Parts of the kernel that no VM of ours has a use for.
UNUSED_MODULES = (
    "kernel/sound",
    "kernel/drivers/gpu",
    "kernel/drivers/media",
    "kernel/drivers/usb",
    "kernel/drivers/infiniband",
    "kernel/drivers/hid",
    "kernel/drivers/net/ethernet",
    "kernel/drivers/net/wireless",
    "kernel/drivers/target",
    "kernel/drivers/iio",
    "kernel/net/bluetooth",
    "kernel/net/wireless",
    "kernel/net/mac80211",
    "kernel/fs/ocfs2",
    "kernel/fs/gfs2",
    "kernel/fs/btrfs",
    "kernel/fs/f2fs",
    "kernel/fs/jfs",
    "kernel/fs/reiserfs",
    "kernel/fs/ceph",
)


def make_debian(ctx: BuildContext) -> None:
    """Two archives: the installed packages, and what is taken out of packages that are not installed.

    Installing the kernel package would bring an initramfs generator and run it; we have our own init.
    """
    packages = ctx.scratch / "root.tar"
    debootstrap(ctx, "bookworm", PACKAGES, packages)
    _filter(packages, ctx.out / "root.tar", lambda path: not dropped(path, UNUSED))
    packages.unlink()
    kernel = ctx.scratch / "kernel.tar"
    listed = (ctx.out / "packages.txt").read_text()
    debootstrap(ctx, "bookworm", (KERNEL, XFS), kernel, variant="extract")
    (ctx.out / "packages.txt").write_text(f"{listed}{KERNEL}\n{XFS}\n")
    _filter(kernel, ctx.out / "kernel.tar", _taken)


def _taken(path: str) -> bool:
    """Kernel and modules, and the programs for xfs."""
    if path.startswith("boot/vmlinuz-") or dropped(path, XFS_FILES):
        return True
    parts = path.split("/", 3)
    if parts[:2] == ["lib", "modules"]:
        return len(parts) < 4 or not dropped(parts[3], UNUSED_MODULES)
    return False


def _filter(source: Path, target: Path, keep: Callable[[str], bool]) -> None:
    with tarfile.open(source) as archive, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        for member in archive:
            path = member.name.removeprefix("./").strip("/")
            if not path or not keep(path):
                continue
            if path.startswith(("lib/modules", "sbin/")):
                member.name = f"usr/{path}"  # /lib and /sbin are links into usr
            out.addfile(member, archive.extractfile(member) if member.isreg() else None)


def finish_root(root: Path, overlay: Path) -> None:
    """Our files on top of Debian's, units switched on and off, nothing that should differ between nodes."""
    for source in sorted(path for path in overlay.rglob("*") if path.is_file()):
        target = root / source.relative_to(overlay)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if "usr/lib/hcp" in target.as_posix() else 0o644)
    for path in ("etc/containerd/conf.d", "etc/containerd/certs.d", "etc/cni/net.d", "var/lib/kubelet", "var/log"):
        (root / path).mkdir(parents=True, exist_ok=True)
    units = root / "etc" / "systemd" / "system"
    for wanted_by, names in ENABLED.items():
        folder = units / f"{wanted_by}.wants"
        folder.mkdir(exist_ok=True)
        for name in names:
            _link(folder / name, _unit_path(root, name))
    for name in MASKED:
        _link(units / name, "/dev/null")
    for pattern in RULES_OFF:
        for rule in (root / "usr" / "lib" / "udev" / "rules.d").glob(pattern):
            rule.unlink()
    generators = root / "etc" / "systemd" / "system-generators"
    generators.mkdir(exist_ok=True)
    for name in GENERATORS_OFF:
        _link(generators / name, "/dev/null")
    _link(units / "default.target", "/lib/systemd/system/multi-user.target")
    _link(root / "etc" / "resolv.conf", "/run/systemd/resolve/stub-resolv.conf")
    (root / "etc" / "machine-id").write_text("")
    (root / "etc" / "hostname").write_text("localhost\n")
    (root / "etc" / "fstab").write_text("/dev/root / auto defaults,noatime 0 0\n")


def _unit_path(root: Path, name: str) -> str:
    own = root / "etc" / "systemd" / "system" / name
    return f"/etc/systemd/system/{name}" if own.exists() else f"/lib/systemd/system/{name}"


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def root_inputs() -> str:
    """Text that changes when `finish_root` would give another result."""
    return f"{ENABLED} {MASKED} {GENERATORS_OFF} {RULES_OFF}"
