"""What protects this machine besides its firewall, and whether it matters to a cluster: told, never changed.

A node has a /sys of its own, in which neither SELinux nor AppArmor shows: kubelet, containerd and KubeVirt ask for no
labels and load no profiles. What is left is what the kernel does by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hcp.local.host.resolvers import machine_nameservers

_ENFORCE = Path("/sys/fs/selinux/enforce")
_PROFILES = Path("/sys/kernel/security/apparmor/profiles")
_CONTEXT = Path("/proc/self/attr/current")
# AppArmor knows programs by their path, and applies a profile inside of containers too. These are at the same path in
# the pod of a virtual machine.
_OF_MACHINES = ("libvirtd", "virtqemud", "virtlogd", "swtpm", "virt-aa-helper")


def notes(*, machines: bool) -> list[str]:
    """Sentences; none where there is nothing to know. `machines`: virtual machines run here."""
    found = [selinux(_read(_ENFORCE), _read(_CONTEXT))]
    if machines:
        found.append(apparmor(_read(_PROFILES).splitlines()))
    if not machine_nameservers():
        found.append(
            "The machine names no resolver that can be reached from a node (those on the loopback cannot, nor those "
            "with IPv6 addresses): pods resolve no names of the outside."
        )
    return [note for note in found if note]


def selinux(enforce: str, context: str) -> str:
    """What the node runs as is what started it; only a confined one is kept from anything."""
    if enforce != "1":
        return ""
    domain = context.strip("\0").partition(":")[2].partition(":")[2].partition(":")[0]
    if domain.startswith("unconfined"):
        return ""
    return (
        f"SELinux is enforcing, and this command runs as {domain or 'an unknown domain'}: a node that is started so is "
        "kept from what that may not do. Run hcp local up from a root shell, which is not confined."
    )


def apparmor(profiles: Iterable[str]) -> str:
    """`profiles` as the kernel lists them: a name and its mode in brackets."""
    enforced = [line.rpartition(" ")[0] for line in profiles if line.endswith("(enforce)")]
    # A profile's name is a word or the path of a program; what comes after // is a part of it.
    named = sorted({name for name in enforced if name.partition("//")[0].rpartition("/")[2] in _OF_MACHINES})
    if not named:
        return ""
    return (
        f"AppArmor has profiles for programs that virtual machines run in their pods ({', '.join(named)}). If machines "
        "do not start and the kernel's log says apparmor=DENIED: aa-disable the profile it names."
    )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
