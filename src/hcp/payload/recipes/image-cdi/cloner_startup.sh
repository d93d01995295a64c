#!/bin/bash
# Sends a volume to the upload server of its clone; the server wants to know how many bytes come at most.
set -euo pipefail

mount="${MOUNT_POINT:?MOUNT_POINT says where the volume is}"
if [ "${VOLUME_MODE:?VOLUME_MODE says what the volume is}" = block ]; then
    kind=blockdevice-clone
    bytes=$(blockdev --getsize64 "$mount")
else
    kind=filesystem-clone
    cd "$mount"
    if [ "${PREALLOCATION:-false}" = true ]; then
        bytes=$(du -s --bytes . | cut -f 1)
    else
        bytes=$(du -s --block-size=1 . | cut -f 1)
    fi
fi
echo "sending up to $bytes bytes of $mount as $kind"
exec /usr/bin/cdi-cloner -v=3 -alsologtostderr -content-type "$kind" -upload-bytes "$bytes" -mount "$mount"
