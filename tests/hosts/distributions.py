"""Which machines are made: a distribution's own packages, kernel and init, as somebody gets who installs it small."""

from __future__ import annotations

from dataclasses import dataclass

# Of every machine: systemd in charge, a way in, what the README asks for (Python), and the firewalls that are tried.
_COMMON = (
    *("systemd-sysv", "systemd-resolved", "udev", "dbus", "libpam-systemd", "openssh-server", "ca-certificates"),
    *("python3", "python3-venv", "kmod", "procps", "iproute2", "iptables", "nftables", "firewalld", "dnsmasq-base"),
    *("apparmor", "initramfs-tools", "zstd", "curl"),
)


@dataclass(frozen=True)
class Distribution:
    name: str
    suite: str
    components: str
    kernel: str
    python: str
    """The version its `python3` is, for which wheels are fetched."""
    ubuntu: bool = False

    @property
    def packages(self) -> tuple[str, ...]:
        return (*_COMMON, self.kernel)


ALL = {
    found.name: found
    for found in (
        Distribution("debian-12", "bookworm", "main", "linux-image-amd64", "3.11"),
        Distribution("debian-13", "trixie", "main", "linux-image-amd64", "3.13"),
        Distribution("ubuntu-24.04", "noble", "main universe", "linux-image-virtual", "3.12", ubuntu=True),
    )
}
