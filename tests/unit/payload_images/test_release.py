"""A release we write is one that the operator reads."""

from __future__ import annotations

from hcp.payload.release import Tag, release_files
from hcp.release import parse

DIGEST = "@sha256:" + "a" * 64


def test_the_operator_reads_what_we_write() -> None:
    tags = [
        Tag("etcd", f"r/hcp/etcd{DIGEST}", "etcd=3.6.5"),
        Tag("kube-apiserver", f"r/k{DIGEST}", "kubernetes=1.36.3"),
    ]
    files = {
        f"release-manifests/{name}": content.encode()
        for name, content in release_files("1.36.3", [*tags, Tag("pause", f"r/p{DIGEST}")], f"r/disk{DIGEST}").items()
    }
    release = parse("r/hcp/release:1.36.3", "sha256:1", files)
    assert release.version == "1.36.3"
    assert release.component("kube-apiserver") == f"r/k{DIGEST}"
    assert release.boot_disk == f"r/disk{DIGEST}"
    assert release.component_versions == {"etcd": "3.6.5", "kubernetes": "1.36.3"}
