"""What a machine has of ours: its address, a way in, names of the outside. Pure.

Its network is QEMU's own and leads nowhere: to this machine by the port of ssh, and from it to one web server that
stands for all of the outside. A name server on the machine's own address knows that server's name.
"""

from __future__ import annotations

ADDRESS, GATEWAY, OUTSIDE = "10.0.2.15", "10.0.2.2", "10.0.2.100"
OUTSIDE_NAME, OUTSIDE_SAYS = "outside.test", "the outside"
CACHE = "/root/.cache"
WHEELS = f"{CACHE}/wheels"
KEYS = f"{CACHE}/authorized_keys"

FILES = {
    "etc/hostname": "host\n",
    "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 host\n",
    "etc/fstab": f"LABEL=root / ext4 defaults 0 1\nLABEL=payload {CACHE} ext4 defaults 0 2\n",
    "etc/resolv.conf": f"nameserver {ADDRESS}\n",
    "etc/default/locale": "LANG=C.UTF-8\n",
    "etc/ssh/sshd_config.d/hcp.conf": f"AuthorizedKeysFile {KEYS}\nUseDNS no\n",
    "etc/systemd/network/10-eth0.network": (
        f"[Match]\nName=eth0\n[Network]\nAddress={ADDRESS}/24\nGateway={GATEWAY}\nDNS={ADDRESS}\n"
    ),
    "etc/systemd/system/names.service": (
        "[Unit]\nDescription=Names of the outside\nAfter=systemd-networkd.service\n"
        "[Service]\nExecStart=/usr/sbin/dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts "
        f"--bind-dynamic --listen-address={ADDRESS} --address=/{OUTSIDE_NAME}/{OUTSIDE}\nRestart=always\n"
        "[Install]\nWantedBy=multi-user.target\n"
    ),
}
COMMANDS = (
    f"mkdir -p {CACHE}",
    "systemctl enable systemd-networkd.service names.service",
    # Each is tried by itself.
    "systemctl disable firewalld.service systemd-resolved.service",
    # Nothing of the outside can be fetched, and nobody looks at the console.
    "systemctl mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online.service getty@tty1.service",
)
# What the kernel is told; the distribution's own rest, AppArmor and cgroups among it, stays as it comes.
KERNEL = "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet"
