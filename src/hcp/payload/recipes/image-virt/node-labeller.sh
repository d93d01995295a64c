#!/bin/bash
# Asks libvirt what virtual machines on this node can have, for virt-handler to put on the Node as labels.
# With KVM that does not work (no hardware support, no permission) the answer for emulation is the right one.
set -euo pipefail

out=/var/lib/kubevirt-node-labeller
arch=$(uname -m)
[ "$arch" = x86_64 ] || exit 0

number=$(awk '$2 == "kvm" {print $1}' /proc/misc)
if [ ! -e /dev/kvm ] && [ -n "$number" ]; then
    mknod /dev/kvm c 10 "$number"
fi
kind=qemu
if [ -e /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
    chmod o+rw /dev/kvm
    # The device alone says little: start a machine with it.
    if echo quit | timeout 10 qemu-system-x86_64 -accel kvm -machine q35 -cpu host -nodefaults -display none -monitor stdio \
        >/dev/null 2>&1; then
        kind=kvm
    fi
fi
echo "virtual machines run with: $kind"

virtqemud -d
for _ in $(seq 100); do
    virsh -q version >/dev/null 2>&1 && break
    sleep 0.1
done
machine=(--machine q35 --arch "$arch" --virttype "$kind")
virsh domcapabilities "${machine[@]}" >"$out/virsh_domcapabilities.xml"
virsh hypervisor-cpu-baseline --features "$out/virsh_domcapabilities.xml" "${machine[@]}" >"$out/supported_features.xml"
virsh capabilities >"$out/capabilities.xml"
