"""Images that are a binary of an upstream project and nothing else."""

from __future__ import annotations

from hcp.payload.image import Image, Take, binaries, version_of

# Those besides 1.36 and 1.35 are made on request only, as `versions.toml` says.
MINORS = ("1.36", "1.35", "1.37", "1.34")


def static_images() -> list[Image]:
    return [
        Image(
            "etcd",
            version_of("etcd"),
            binaries("etcd", "etcd", "etcdctl", "etcdutl"),
            entrypoint=("etcd",),
            summary="etcd with etcdctl and etcdutl",
        ),
        *(image for minor in MINORS for image in kubernetes_images(minor)),
        Image("coredns", version_of("coredns"), binaries("coredns", "coredns"), entrypoint=("coredns",)),
        Image("registry", version_of("registry"), binaries("registry", "registry"), entrypoint=("registry",)),
        Image(
            "local-path-provisioner",
            version_of("local-path-provisioner"),
            binaries("local-path-provisioner", "local-path-provisioner"),
            entrypoint=("local-path-provisioner",),
        ),
        Image(
            "konnectivity-server",
            version_of("konnectivity"),
            binaries("konnectivity", "proxy-server"),
            entrypoint=("proxy-server",),
        ),
        Image(
            "konnectivity-agent",
            version_of("konnectivity"),
            binaries("konnectivity", "proxy-agent"),
            entrypoint=("proxy-agent",),
        ),
        Image(
            "cluster-api",
            version_of("cluster-api"),
            _all_binaries("cluster-api"),
            entrypoint=("/cluster-api-manager",),
            links={"manager": "cluster-api-manager"},
        ),
        Image(
            "cluster-api-kubevirt",
            version_of("cluster-api-kubevirt"),
            _all_binaries("cluster-api-kubevirt"),
            entrypoint=("/cluster-api-kubevirt-manager",),
            links={"manager": "cluster-api-kubevirt-manager"},
        ),
        Image("pause", "1", binaries("pause", "pause", folder="/"), entrypoint=("/pause",)),
    ]


def _all_binaries(component: str) -> tuple[Take, ...]:
    """An official build is two programs, ours one of the same name."""
    return (Take(component, "bin/*", "/"),)


def kubernetes_images(minor: str) -> list[Image]:
    """The control plane of one minor. kube-proxy is with the network images: it runs tools of a base."""
    component = f"kubernetes-{minor}"
    version = version_of(component)
    return [
        Image(name, version, binaries(component, name), entrypoint=(name,), minor=minor)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ]
