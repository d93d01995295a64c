"""Images whose programs call iptables, nft, ipset or a shell."""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of
from hcp.payload.images import bases
from hcp.payload.images.static import MINORS


def network_images() -> list[Image]:
    net = bases.NET.component
    return [
        *(
            Image(
                "kube-proxy",
                version_of(f"kubernetes-{minor}"),
                binaries(f"kubernetes-{minor}", "kube-proxy"),
                entrypoint=("kube-proxy",),
                base=net,
                user="0",
                minor=minor,
            )
            for minor in MINORS
        ),
        Image(
            "flannel",
            version_of("flannel"),
            binaries("flannel", "flanneld"),
            entrypoint=("flanneld",),
            base=net,
            user="0",
            links={"/opt/bin/flanneld": "/usr/local/bin/flanneld"},
            summary="flanneld, which joins the pod networks of nodes",
        ),
        Image(
            "kube-router",
            version_of("kube-router"),
            binaries("kube-router", "kube-router"),
            entrypoint=("kube-router",),
            base=net,
            user="0",
            summary="kube-router (NetworkPolicy enforcement)",
        ),
        Image("local-path-helper", "1", (), base=net, user="0", command=("/bin/sh",), summary="a shell with coreutils"),
        Image(
            "haproxy",
            "debian",
            (),
            base=bases.HAPROXY.component,
            entrypoint=("/usr/sbin/haproxy",),
            command=("-W", "-db", "-f", "/etc/haproxy/haproxy.cfg"),
        ),
    ]
