"""KubeVirt's images, with Debian's libvirt and QEMU made to look like what KubeVirt expects, and CDI's.

What differs from upstream's base: Debian has only the monolithic libvirtd, other user ids, and an absolute /var/run
link that breaks bridge binding.
"""

from __future__ import annotations

from dataclasses import replace

from hcp.payload.image import Image, Take, binaries, version_of
from hcp.payload.images import bases
from hcp.payload.images.suitability import kubevirt_unfit
from hcp.payload.versions import recipe_dir

_USER = "1001"
_BIN = "/usr/bin/"
_PASSWD = """\
root:x:0:0:root:/root:/bin/bash
libvirt-qemu:x:107:107::/home/qemu:/bin/bash
qemu:x:107:107::/home/qemu:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = """\
root:x:0:
tty:x:5:
disk:x:6:
kvm:x:36:qemu
libvirt-qemu:x:107:
qemu:x:107:
libvirt:x:108:qemu
nogroup:x:65534:
"""


def virt_images() -> list[Image]:
    return [_official(replace(image, unfit=kubevirt_unfit)) for image in _virt_images()]


def cdi_images() -> list[Image]:
    return [_official(image) for image in _cdi_images()]


def _official(image: Image) -> Image:
    """Both projects publish all their images in one place, under the names that ours have too."""
    return replace(image, official=f"quay.io/kubevirt/{image.name}:v{image.version}")


def _virt_images() -> list[Image]:
    version = version_of("kubevirt")
    plain = ("virt-operator", "virt-api", "virt-controller", "virt-exportproxy")
    return [
        *(
            Image(name, version, binaries("kubevirt", name, folder=_BIN), entrypoint=(_BIN + name,), user=_USER)
            for name in plain
        ),
        Image(
            "virt-exportserver",
            version,
            binaries("kubevirt", "virt-exportserver", folder=_BIN),
            entrypoint=(_BIN + "virt-exportserver",),
            base=bases.CDI.component,
            user=_USER,
        ),
        _launcher(version),
        Image(
            "virt-handler",
            version,
            binaries("kubevirt", "virt-handler", "virt-chroot", "container-disk", folder=_BIN),
            entrypoint=(_BIN + "virt-handler",),
            base=bases.VIRT.component,
            user="0",
            texts={"/etc/passwd": _PASSWD, "/etc/group": _GROUP},
            links={"/var/run": "../run", "/var/lock": "../run/lock"},
        ),
    ]


def _launcher(version: str) -> Image:
    recipe = recipe_dir("image-virt")
    names = ("virt-launcher", "virt-freezer", "virt-probe", "virt-tail", "container-disk")
    files = "files/virt-launcher/"
    return Image(
        "virt-launcher",
        version,
        (
            *binaries("kubevirt", *names, folder=_BIN),
            Take(
                "kubevirt",
                "bin/virt-launcher-monitor",
                _BIN + "virt-launcher-monitor",
                capabilities=("net_bind_service",),
            ),
            Take("kubevirt", files + "qemu.conf", "/etc/libvirt/qemu.conf", mode=0o644),
            Take("kubevirt", files + "virtqemud.conf", "/etc/libvirt/virtqemud.conf", mode=0o644),
            Take("kubevirt", files + "nsswitch.conf", "/etc/nsswitch.conf", mode=0o644),
            Take("kubevirt", files + "qemu-hook", "/etc/libvirt/hooks/qemu"),
        ),
        entrypoint=(_BIN + "virt-launcher",),
        base=bases.VIRT.component,
        user="0",
        texts={"/etc/passwd": _PASSWD, "/etc/group": _GROUP},
        scripts={
            "/usr/sbin/virtqemud": (recipe / "virtqemud").read_text(),
            "/usr/bin/node-labeller.sh": (recipe / "node-labeller.sh").read_text(),
        },
        links={"/var/run": "../run", "/var/lock": "../run/lock"},
        folders={
            "/home/qemu": (0o755, 107),
            "/usr/lib64/qemu-kvm": (0o755, 0),
            "/var/log/libvirt/qemu": (0o755, 107),
            "/var/cache/libvirt/qemu": (0o750, 107),
            "/var/lib/libvirt/qemu": (0o755, 107),
            "/var/lib/kubevirt-node-labeller": (0o755, 0),
        },
        summary="virt-launcher with libvirt and QEMU",
    )


def _cdi_images() -> list[Image]:
    version = version_of("cdi")
    verbose = "-alsologtostderr"
    plain = ("cdi-apiserver", "cdi-uploadproxy")
    tools = ("cdi-containerimage-server", "cdi-image-size-detection", "cdi-source-update-poller")
    startup = (recipe_dir("image-cdi") / "cloner_startup.sh").read_text()
    return [
        Image(
            "cdi-operator",
            version,
            binaries("cdi", "cdi-operator", folder=_BIN),
            entrypoint=(_BIN + "cdi-operator",),
            user=_USER,
        ),
        *(
            Image(name, version, binaries("cdi", name, folder=_BIN), entrypoint=(_BIN + name, verbose), user=_USER)
            for name in plain
        ),
        # On a base, because its readiness probe runs `cat`.
        Image(
            "cdi-controller",
            version,
            binaries("cdi", "cdi-controller", folder=_BIN),
            entrypoint=(_BIN + "cdi-controller", verbose),
            base=bases.CDI.component,
            user=_USER,
        ),
        Image(
            "cdi-importer",
            version,
            binaries("cdi", "cdi-importer", *tools, folder=_BIN),
            entrypoint=(_BIN + "cdi-importer", verbose),
            base=bases.CDI.component,
            user=_USER,
        ),
        Image(
            "cdi-uploadserver",
            version,
            binaries("cdi", "cdi-uploadserver", folder=_BIN),
            entrypoint=(_BIN + "cdi-uploadserver", verbose),
            base=bases.CDI.component,
            user=_USER,
        ),
        Image(
            "cdi-cloner",
            version,
            binaries("cdi", "cdi-cloner", folder=_BIN),
            entrypoint=(_BIN + "cloner_startup.sh",),
            base=bases.CDI.component,
            user=_USER,
            scripts={_BIN + "cloner_startup.sh": startup},
        ),
    ]
