#!/bin/sh
# Fills containerd's directory of a node's disk with images, unpacked, so that a node need not pull what every node runs.
# Started in mount and process namespaces of its own: nothing stays behind, whatever happens.
#
#   preload.sh CONTAINERD CTR DIRECTORY LAYERS ARCHIVE...     LAYERS: a file with the digests that need not stay packed
set -eu

containerd=$1 ctr=$2 directory=$3 layers=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/config.toml" <<END
version = 3
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"]
END
"$containerd" --config "$work/config.toml" --root "$directory" --state "$work/state" --address "$work/socket" &
daemon=$!
call() {
    "$ctr" --address "$work/socket" --namespace k8s.io "$@"
}
until call version >/dev/null 2>&1; do
    kill -0 "$daemon"
    sleep 0.1
done
for archive in "$@"; do
    call images import --local --snapshotter overlayfs "$archive"
done
while read -r digest; do
    call content rm "$digest"
done <"$layers"
call images ls
kill "$daemon"
wait "$daemon" || true
