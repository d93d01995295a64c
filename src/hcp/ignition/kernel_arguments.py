"""Kernel arguments that a MachineConfig asks for: written into the disk's boot loader, followed by one restart.

The node's disk boots a kernel of its own by extlinux, which reads its configuration from the root file system. Ignition
runs when the kernel runs already, so a unit of the document adds the arguments and restarts the machine before
containerd and kubelet start. It restarts once: a machine whose kernel was not started with them afterwards (another
boot loader, a hypervisor that gives the kernel) fails there, visibly, and never joins with half of its configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hcp.errors import HcpError
from hcp.ignition.document import Document, document, file, unit

LIST = "/etc/hcp/kernel-arguments"
SCRIPT = "/usr/lib/hcp/kernel-arguments"
UNIT = "kernel-arguments.service"
# What x86 kernels read is 2048 bytes, of which the disk's own arguments take some.
LONGEST = 1536
_WORD = re.compile(r"[!#-&(-~]{1,512}")  # printable, without blanks and quotes
# A node with another root or first process would not be this node.
_OURS = ("root", "init", "rdinit", "initrd", "BOOT_IMAGE")

_SCRIPT = f"""\
#!/bin/sh
# Starts this machine's kernel with the arguments of the cluster's configuration.
set -eu

config=${{HCP_BOOT_CONFIG:-/boot/extlinux/extlinux.conf}}
tried=${{HCP_STATE:-/var/lib/hcp}}/kernel-arguments-tried
IFS= read -r wanted <"${{HCP_ARGUMENTS:-{LIST}}}"
IFS= read -r now <"${{HCP_CMDLINE:-/proc/cmdline}}"
case " $now " in
*" $wanted "*) exit 0 ;;
esac
if [ -e "$tried" ]; then
    echo "the kernel was started without: $wanted" >&2
    exit 1
fi
if ! grep -q '^ *APPEND ' "$config"; then
    echo "$config is not the configuration of this disk's boot loader" >&2
    exit 1
fi
while IFS= read -r line; do
    case $line in
    *APPEND\\ *) printf '%s %s\\n' "$line" "$wanted" ;;
    *) printf '%s\\n' "$line" ;;
    esac
done <"$config" >"$config.new"
sync
mv "$config.new" "$config"
: >"$tried"
sync
echo "restarting with the kernel arguments: $wanted"
systemctl --no-block reboot
# Nothing that waits for this unit is to start any more.
exec sleep infinity
"""

_UNIT = f"""\
[Unit]
Description=Start the kernel with the arguments of the cluster's configuration
After=local-fs.target hcp-growroot.service
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}
TimeoutStartSec=infinity
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
RequiredBy=kubelet.service
"""


def words(asked: Iterable[object], origin: str) -> list[str]:
    """The arguments one by one; an entry may hold several."""
    found = []
    for entry in asked:
        if not isinstance(entry, str):
            raise HcpError(f"{origin} has the kernel argument {entry!r}, which is no text", hint="Put it in quotes.")
        found += entry.split(" ")
    found = [word for word in found if word]
    for word in found:
        if not _WORD.fullmatch(word):
            raise HcpError(
                f"{origin} has the kernel argument {word[:80]!a}",
                hint="Arguments have no quotes and control characters.",
            )
        if word.partition("=")[0] in _OURS:
            raise HcpError(f"{origin} has the kernel argument {word[:80]!a}, which is the node disk's own")
    if len(" ".join(found)) > LONGEST:
        raise HcpError(f"{origin} has more than {LONGEST} characters of kernel arguments")
    return found


def kernel_arguments_document(arguments: Sequence[str]) -> Document:
    """Nothing for a node that asks for none."""
    if not arguments:
        return document()
    line = " ".join(words(arguments, "the node configuration"))
    return document(files=[file(LIST, f"{line}\n"), file(SCRIPT, _SCRIPT, 0o755)], units=[unit(UNIT, _UNIT)])
