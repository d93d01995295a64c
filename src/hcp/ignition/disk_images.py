"""Images that the node's disk brings along, found by the names that the cluster's release has for them.

The disk knows them by the names they were built with; a release that was published elsewhere names the same digests
otherwise. Without this a node pulls them again, and cannot pull `pause` at all from a registry with a login: containerd
fetches it by itself, without the kubelet's credentials.
"""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api.names import BUILD_REGISTRY
from hcp.ignition.document import Document, document, file, unit

LIST = "/etc/containerd/release-images"
SCRIPT = "/usr/local/lib/hcp/release-images"
UNIT = "release-images.service"

# Missing is no failure: another disk has other images, and the node pulls what it lacks.
_SCRIPT = f"""\
#!/bin/sh
# Gives images that are on the disk the names that this node's cluster has for them: the same digest is the same image.
set -eu

known=$(ctr --namespace k8s.io images ls --quiet)
while read -r image; do
    for name in $known; do
        case $name in
        "$image") break ;;
        *@"${{image#*@}}")
            ctr --namespace k8s.io images tag "$name" "$image"
            break
            ;;
        esac
    done
done <{LIST}
"""

_UNIT = f"""\
[Unit]
Description=Name the images of the disk as the cluster's release does
After=containerd.service
Requires=containerd.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}

[Install]
WantedBy=multi-user.target
"""


def disk_images_document(images: Iterable[str]) -> Document:
    """For the release's images by digest; nothing where their names are those of the disk already."""
    foreign = sorted({image for image in images if "@" in image and not image.startswith(f"{BUILD_REGISTRY}/")})
    if not foreign:
        return document()
    listed = "".join(f"{image}\n" for image in foreign)
    return document(files=[file(LIST, listed), file(SCRIPT, _SCRIPT, 0o755)], units=[unit(UNIT, _UNIT)])
