"""Debian root file systems as base images, made by mmdebstrap from the mirror this machine is configured with.

A base image is an artifact `rootfs-<name>` with `image/` (an OCI layout of one layer) and `packages.txt`. Images put
their own layers on top; the base's blob is shared by hard links, so ten images on one base hold it once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.oci.writer_layer import EPOCH
from hcp.payload.component import Component
from hcp.payload.context import BuildContext
from hcp.payload.rootfs_mirror import sources

# Nothing in a container reads these; the copyright files stay.
UNUSED = (
    "dev/*",
    "proc/*",
    "sys/*",
    "run/*",
    "tmp/*",
    "var/cache/*",
    "var/log/*",
    "var/lib/apt/*",
    "var/lib/dpkg/*-old",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/share/bash-completion",
    "usr/share/zoneinfo/right",
    "usr/share/zoneinfo/posix",
    "usr/lib/udev/hwdb.d",
)


@dataclass(frozen=True)
class RootFs:
    """What a base holds. `finish` may still change the collected paths before they are written."""

    name: str
    suite: str
    packages: tuple[str, ...]
    variant: str = "essential"
    drop: tuple[str, ...] = ()
    finish: Callable[[Layer], None] | None = None
    revision: int = 1

    @property
    def component(self) -> str:
        return f"rootfs-{self.name}"


def rootfs_component(rootfs: RootFs, summary: str) -> Component:
    return Component(
        name=rootfs.component,
        version=rootfs.suite,
        build=partial(_build, rootfs),
        inputs=partial(_inputs, rootfs),
        outputs=("image/index.json", "packages.txt"),
        summary=summary,
        how="made from Debian packages",
    )


def _inputs(rootfs: RootFs) -> str:
    return json.dumps([rootfs.suite, rootfs.packages, rootfs.variant, rootfs.drop, UNUSED, rootfs.revision])


def _build(rootfs: RootFs, ctx: BuildContext) -> None:
    archive = ctx.scratch / "root.tar"
    debootstrap(ctx, rootfs.suite, rootfs.packages, archive, variant=rootfs.variant)
    layer = Layer(f"Debian {rootfs.suite} with {' '.join(rootfs.packages)}")
    layer.tar(archive, drop=(*UNUSED, *rootfs.drop), keep=_kept)
    for path in ("dev", "proc", "sys", "run"):
        layer.directory(path)
    layer.directory("tmp", mode=0o1777)
    if rootfs.finish is not None:
        rootfs.finish(layer)
    write_image(ctx.out / "image", rootfs.component, [layer], ImageConfig(command=("/bin/sh",)))


def _kept(path: str) -> bool:
    return not path.startswith("usr/share/doc/") or path.endswith("/copyright")


def debootstrap(
    ctx: BuildContext,
    suite: str,
    packages: tuple[str, ...],
    target: Path,
    *,
    variant: str = "essential",
    options: tuple[str, ...] = (),
) -> None:
    """Make a Debian root file system at `target` (a .tar, or a directory) and list its packages in the artifact."""
    if os.geteuid() != 0:
        raise HcpError(
            f"building {ctx.component.name} makes a Debian root file system, which needs root",
            hint="run the command as root, or import finished payloads with `hcp payload import`",
        )
    ctx.apt("mmdebstrap")
    ctx.say(f"installing Debian {suite} packages")
    argv: list[str | Path] = [
        "mmdebstrap",
        f"--variant={variant}",
        f"--include={','.join(packages)}",
        '--aptopt=Acquire::Retries "5"',
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        *options,
    ]
    if variant != "extract":
        argv.append(f'--customize-hook=chroot "$1" dpkg-query -W > "{ctx.out / "packages.txt"}"')
    else:
        (ctx.out / "packages.txt").write_text("\n".join(packages) + "\n")
    argv += [suite, target, *sources(suite)]
    ctx.run(argv, env={"SOURCE_DATE_EPOCH": str(EPOCH), "LC_ALL": "C.UTF-8"})
