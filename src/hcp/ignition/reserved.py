"""`autoSizingReserved`: a node sets aside what it needs for itself, by the size it finds itself to have.

The size of a machine is not in its document, and may be another one after a restart. So a unit computes it at every
start, before the kubelet reads it from a folder of additions to its configuration. The shares are those that clouds
publish: a large part of the first gigabytes and of the first processor, little of what comes after.
"""

from __future__ import annotations

from collections.abc import Sequence

from hcp.ignition.document import Document, document, file, unit

RESOURCES = ("cpu", "memory")
# The kubelet reads every *.conf here after its configuration.
FOLDER = "/etc/kubernetes/kubelet.conf.d"
SCRIPT = "/usr/lib/hcp/reserved"
UNIT = "reserved.service"

_LINES = {"cpu": "  cpu: ${cpu}m", "memory": "  memory: ${memory}Mi"}

_SCRIPT = f"""\
#!/bin/sh
# Tells the kubelet which part of this machine is not for pods.
set -eu

folder=${{HCP_FOLDER:-{FOLDER}}}
# What of $1 lies between $2 and $3, times $4 of 10000.
share() {{
    upto=$3
    if [ "$1" -lt "$upto" ]; then upto=$1; fi
    if [ "$upto" -gt "$2" ]; then echo $(((upto - $2) * $4 / 10000)); else echo 0; fi
}}
while read -r name value _; do
    if [ "$name" = MemTotal: ]; then total=$((value / 1024)); fi
done <"${{HCP_MEMINFO:-/proc/meminfo}}"
memory=0
for part in "0 4096 2500" "4096 8192 2000" "8192 16384 1000" "16384 131072 600" "131072 1073741824 200"; do
    memory=$((memory + $(share "$total" $part)))
done
all=$((${{HCP_PROCESSORS:-$(nproc)}} * 1000))
cpu=0
for part in "0 1000 600" "1000 2000 100" "2000 4000 50" "4000 1073741824 25"; do
    cpu=$((cpu + $(share "$all" $part)))
done
mkdir -p "$folder"
cat >"$folder/10-reserved.conf" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
systemReserved:
@LINES@
END
"""

_UNIT = f"""\
[Unit]
Description=Set aside what this machine needs besides its pods
After=local-fs.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}

[Install]
WantedBy=multi-user.target
RequiredBy=kubelet.service
"""


def reserved_document(resources: Sequence[str]) -> Document:
    """`resources`: those that the node computes; nothing for a node that computes none."""
    if not resources:
        return document()
    script = _SCRIPT.replace("@LINES@", "\n".join(_LINES[name] for name in resources))
    return document(files=[file(SCRIPT, script, 0o755)], units=[unit(UNIT, _UNIT)])
