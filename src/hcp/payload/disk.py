"""The boot disk of a node: `node-disk-<minor>`, a containerDisk with Debian, containerd, kubelet and Ignition.

The artifact's `image/` is an OCI layout whose only file is `/disk/disk.qcow2` (owner 107), good as a DataVolume's
registry source and as a containerDisk. Nothing of a cluster is inside. On the disk:

    /usr/local/bin/{kubelet,containerd,containerd-shim-runc-v2,ctr,runc}   /opt/cni/bin/*
    /etc/containerd/config.toml        imports /etc/containerd/conf.d/*.toml; registries in /etc/containerd/certs.d
    /var/lib/containerd                the images every node runs, unpacked, under the names the release gives them
    /usr/lib/hcp/hostname              host name = VM name, from openstack/latest/meta_data.json of the config drive
    /usr/lib/hcp/firstboot             once: Ignition (fetch, files), then starts the units it enabled
    /usr/lib/hcp/growroot              at boot: root file system as big as the disk
    /usr/lib/hcp/mirror-proxy          asks mirrors by the cluster's rules; runs only where the document has some
    /usr/lib/hcp/powerbutton           shuts down when the hypervisor asks for it

Units: hcp-hostname, hcp-firstboot, hcp-growroot, hcp-powerbutton, containerd, ssh.socket. The kubelet's unit, its
configuration and the sandbox image come with the Ignition document. DNS for pods is /run/systemd/resolve/resolv.conf;
cgroups are v2 with the systemd driver; the network interface is eth0. The serial console is ttyS0.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.payload.component import Component, hash_files
from hcp.payload.context import BuildContext
from hcp.payload.disk_images import node_images, preload
from hcp.payload.disk_initrd import ROOT_MODULES, build_initrd
from hcp.payload.disk_raw import DISK_BYTES, make_disk
from hcp.payload.disk_root import (
    KERNEL,
    PACKAGES,
    UNUSED_MODULES,
    XFS_FILES,
    finish_root,
    make_debian,
    root_inputs,
)
from hcp.payload.image import REGISTRY, version_of
from hcp.payload.linking.check import demand_inside
from hcp.payload.linking.tree import read_folder
from hcp.payload.versions import recipe_dir

REPOSITORY = "hcp/node-disk"
_REVISION = 4
_BINARIES = {
    "containerd": ("containerd", "containerd-shim-runc-v2", "ctr"),
    "runc": ("runc",),
}
# What nobody but the node itself starts, in /usr/lib/hcp.
_OURS = ("ignition", "mirror-proxy")


def components(minors: tuple[str, ...]) -> Iterator[Component]:
    yield Component(
        name="rootfs-node",
        version="bookworm",
        build=make_debian,
        inputs=lambda: f"{PACKAGES} {KERNEL} {XFS_FILES} {UNUSED_MODULES} 2",
        outputs=("root.tar", "kernel.tar", "packages.txt"),
        summary="Debian and kernel of a node's disk",
        how="made from Debian packages",
    )
    for minor in minors:
        yield Component(
            name=f"node-disk-{minor}",
            version=version_of(f"kubernetes-{minor}"),
            build=partial(_build, minor),
            deps=(
                *("rootfs-node", f"kubernetes-{minor}", "containerd", "runc", "cni-plugins", *_OURS),
                *node_images(minor).values(),
            ),
            inputs=_inputs,
            outputs=("image/index.json",),
            summary=f"boot disk of a node with kubelet {minor}",
            how="made from Debian packages",
        )


def _inputs() -> str:
    return f"{hash_files(recipe_dir('node-disk'))} {root_inputs()} {ROOT_MODULES} {DISK_BYTES} {_REVISION}"


def _build(minor: str, ctx: BuildContext) -> None:
    root = ctx.scratch / "root"
    root.mkdir()
    base = ctx.dep("rootfs-node")
    ctx.say("unpacking Debian")
    for archive in ("root.tar", "kernel.tar"):
        ctx.run(["tar", "-C", root, "--numeric-owner", "-xpf", base / archive])
    _add_kernel(ctx, root)
    _add_binaries(ctx, root, minor)
    finish_root(root, recipe_dir("node-disk") / "root")
    _check_libraries(ctx, root)
    preload(ctx, node_images(minor), root / "var" / "lib" / "containerd")
    disk = ctx.scratch / "disk.qcow2"
    make_disk(ctx, root, disk)
    shutil.rmtree(root)
    layer = Layer(f"boot disk for kubelet {minor}")
    layer.directory("disk", uid=107, gid=107)
    layer.file("disk/disk.qcow2", disk, mode=0o440, uid=107, gid=107)
    name = f"{REGISTRY}/{REPOSITORY}:{ctx.component.version}"
    # The disk is compressed already.
    write_image(ctx.out / "image", name, [layer], ImageConfig(user="107"), compress=False)


def _add_kernel(ctx: BuildContext, root: Path) -> None:
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    if not kernels:
        raise HcpError(f"the Debian package {KERNEL} brought no kernel")
    version = kernels[-1].name.removeprefix("vmlinuz-")
    kernels[-1].rename(root / "boot" / "vmlinuz")
    ctx.apt("kmod", "gcc", "libc6-dev")
    ctx.run(["depmod", "-b", root, version])
    init = ctx.scratch / "init"
    ctx.run(
        ["gcc", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-o", init, recipe_dir("node-disk") / "init.c"]
    )
    (root / "boot" / "initrd").write_bytes(build_initrd(init, root / "usr" / "lib" / "modules" / version))
    (root / "boot" / "extlinux").mkdir()
    shutil.copyfile(recipe_dir("node-disk") / "extlinux.conf", root / "boot" / "extlinux" / "extlinux.conf")


def _add_binaries(ctx: BuildContext, root: Path, minor: str) -> None:
    target = root / "usr" / "local" / "bin"
    wanted = {**_BINARIES, f"kubernetes-{minor}": ("kubelet",)}
    for component, names in wanted.items():
        for name in names:
            _install(ctx.dep(component) / "bin" / name, target / name)
    for name in _OURS:
        _install(ctx.dep(name) / "bin" / name, root / "usr" / "lib" / "hcp" / name)
    for plugin in (ctx.dep("cni-plugins") / "bin").iterdir():
        _install(plugin, root / "opt" / "cni" / "bin" / plugin.name)


def _check_libraries(ctx: BuildContext, root: Path) -> None:
    """Every program on the disk finds its libraries there; Debian's own and ours."""
    tree = read_folder(root)
    demand_inside(ctx.component.name, tree, tree.files)


def _install(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
