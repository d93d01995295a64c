"""Images that the Kubernetes project's e2e suite runs, made here under the names and tags it asks for.

Upstream's stand on Alpine and come from registries that an embedded cluster cannot reach. These hold the same test
program and the same tools from Debian. All stand on one base, so a node pulls it once.
"""

from __future__ import annotations

from hcp.payload.image import REGISTRY, Image, Take, binaries
from hcp.payload.images import bases
from hcp.payload.versions import component_table

SUITE = "conformance-1.36"
REPOSITORIES = f"{REGISTRY}/hcp"
"""Where the suite finds its images; their names follow."""
_BUSYBOX_TOO = (
    *("[", "arch", "base64", "blockdev", "clear", "cmp", "cpio", "diff", "dmesg", "expr", "fold", "free", "getopt"),
    *("gunzip", "gzip", "hexdump", "httpd", "ifconfig", "ip", "less", "logger", "md5sum", "mkfifo", "mknod", "more"),
    *("mount", "netstat", "nproc", "od", "paste", "pidof", "ping6", "realpath", "reset", "route", "sha256sum", "su"),
    *("tee", "telnet", "time", "timeout", "top", "traceroute", "tty", "umount", "uniq", "uptime", "usleep", "vi"),
    *("watch", "which", "who", "whoami", "yes", "zcat"),
)
# Specs of storage look at nodes from inside a pod; the base has a better ip.
_AGNHOST_TOO = ("nsenter", *(name for name in _BUSYBOX_TOO if name != "ip"))
_NGINX = "1.15-4"
# One user and one group of the image's own: a spec asks whether a pod's groups know them.
_PASSWD = "root:x:0:0:root:/:/bin/sh\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n"
_GROUP = "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"


def tags() -> dict[str, str]:
    """Image name → the tag the suite asks for."""
    found: dict[str, str] = component_table(SUITE)["images"]
    return found


def conformance_images() -> list[Image]:
    tag, base = tags(), bases.TESTS.component
    return [
        Image(
            "agnhost",
            tag["agnhost"],
            (
                *binaries(SUITE, "agnhost", folder="/"),
                Take(SUITE, "files/localhost.crt", "/localhost.crt", mode=0o644),
                Take(SUITE, "files/localhost.key", "/localhost.key", mode=0o644),
            ),
            entrypoint=("/agnhost",),
            command=("pause",),
            base=base,
            user="0",
            texts={"/etc/passwd": _PASSWD, "/etc/group": _GROUP},
            links={"/agnhost-2": "agnhost", **{f"/bin/{name}": "busybox" for name in _AGNHOST_TOO}},
            folders={"/uploads": (0o755, 0)},
            summary="test program of the Kubernetes e2e suite, with dig, curl and nc",
        ),
        Image(
            "busybox",
            tag["busybox"],
            binaries("busybox", "busybox", folder="/bin/"),
            command=("sh",),
            user="0",
            links={f"/bin/{name}": "busybox" for name in sorted({*bases.BUSYBOX, *_BUSYBOX_TOO})},
        ),
        # Specs of storage want a shell of it, to run a script that lies on a volume; there is no web server in it.
        Image(
            "nginx",
            _NGINX,
            binaries("busybox", "busybox", folder="/bin/"),
            command=("sh",),
            user="0",
            links={f"/bin/{name}": "busybox" for name in sorted({*bases.BUSYBOX, *_BUSYBOX_TOO})},
            summary="a shell under the name of another test image of the Kubernetes e2e suite",
        ),
        Image("glibc-dns-testing", tag["glibc-dns-testing"], (), command=("/bin/sh",), base=base, user="0"),
        Image("pause", tag["pause"], binaries("pause", "pause", folder="/"), entrypoint=("/pause",), minor="e2e"),
    ]
