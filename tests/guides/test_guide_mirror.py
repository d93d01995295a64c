"""Mirroring for a disconnected site: the guide's two documents and four commands, typed as they are there.

The names of Red Hat's registries stand for a registry of ours, which has what the documents name, made small; the rest
of the documents is as printed.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.support.cli_runner import BIN
from tests.support.image_sets import Published, Site, tags_on_disk
from tests.support.mirroring import published, site, source, storage, target
from tests.support.registry import Registry

__all__ = ["published", "site", "source", "storage", "target"]

FIRST = """
apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform:
    channels:
    - name: candidate-1.36
      minVersion: 1.36.1
      maxVersion: 1.36.3
      type: ocp
    kubeVirtContainer: true
    graph: true
  additionalImages:
  - name: {registry}/tools/tool:v1
  - name: {registry}/tools/many:latest
  operators:
  - catalog: {registry}/operators/example-operator-index:v1.36
    packages:
    - name: lvms
    - name: metallb
"""
SECOND = """
apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform:
    graph: true
    release: {registry}/team/hcp/release:1.36.2
    kubeVirtContainer: true
"""


class Typing:
    """A shell on the site's machine: `oc mirror` finds `oc-mirror` as oc finds its plug-ins, on the path."""

    def __init__(self, site: Site) -> None:
        self.site = site
        oc = site.folder / "bin" / "oc"
        oc.parent.mkdir()
        oc.write_text('#!/bin/sh\nplugin="oc-$1"\nshift\nexec "$plugin" "$@"\n')
        oc.chmod(0o755)
        docker = site.folder / ".docker"
        docker.mkdir()
        (site.folder / "auth.json").rename(docker / "config.json")
        self.env = {
            **site.env,
            "PATH": f"{BIN}:{oc.parent}:{os.environ['PATH']}",
            "SSL_CERT_FILE": str(site.folder / "ca.pem"),
        }

    def run(self, line: str) -> None:
        done = subprocess.run(
            shlex.split(line), cwd=self.site.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def typing(site: Site) -> Typing:
    return Typing(site)


def _documents(site: Site, name: str) -> list[str]:
    return sorted(one["kind"] for one in site.documents(f"{name}/working-dir/cluster-resources/idms-oc-mirror.yaml"))


def test_the_first_document_into_a_registry(typing: Typing, target: Registry, published: Published) -> None:
    site = typing.site
    (site.folder / "imagesetconfig.yaml").write_text(FIRST.format(registry=published.registry.host))
    typing.run(f"oc-mirror --v2 --config imagesetconfig.yaml --workspace file://mirror-file docker://{target.host}")
    resources = site.folder / "mirror-file/working-dir/cluster-resources"
    assert sorted(path.name for path in resources.iterdir()) == [
        "cc-example-operator-index-v1-36.yaml",
        "cs-example-operator-index-v1-36.yaml",
        "idms-oc-mirror.yaml",
        "itms-oc-mirror.yaml",
        "updateService.yaml",
    ]
    have = tags_on_disk(site.folder.parent / "target/data")
    for version in ("1.36.1", "1.36.2", "1.36.3"):
        assert f"openshift/release-images:{version}-x86_64" in have
        assert f"openshift/release:{version}-x86_64-kube-virt-container" in have
    (results,) = (site.folder / "oc-mirror-workspace").iterdir()
    assert results.name.startswith("results-")
    assert sorted(path.name for path in results.iterdir()) == [
        "catalogSource-cs-example-operator-index.yaml",
        "imageContentSourcePolicy.yaml",
        "mapping.txt",
    ]


def test_a_release_by_its_tag_in_a_partially_disconnected_site(
    typing: Typing, target: Registry, published: Published
) -> None:
    site = typing.site
    (site.folder / "imagesetconfig.yaml").write_text(SECOND.format(registry=published.registry.host))
    typing.run(f"oc mirror -c imagesetconfig.yaml --workspace file://{site.folder}/here docker://{target.host} --v2")
    have = tags_on_disk(site.folder.parent / "target/data")
    assert [tag for tag in have if tag.startswith("openshift/release-images:")] == [
        "openshift/release-images:1.36.2-x86_64"
    ]
    assert "openshift/graph-image:latest" in have
    assert set(_documents(site, "here")) == {"ImageDigestMirrorSet"}


def test_over_a_disk_in_a_fully_disconnected_site(
    typing: Typing, source: Registry, target: Registry, published: Published
) -> None:
    site = typing.site
    (site.folder / "imagesetconfig.yaml").write_text(FIRST.format(registry=published.registry.host))
    typing.run(f"oc mirror -c imagesetconfig.yaml file://{site.folder}/disk --v2")
    # Inside, nobody has a login for the source.
    (site.folder / ".docker/config.json").write_text(json.dumps(target.auths))
    (site.folder / "ca.pem").write_bytes(target.ca_pem)
    typing.run(f"oc mirror -c imagesetconfig.yaml --from file://{site.folder}/disk docker://{target.host} --v2")
    have = tags_on_disk(site.folder.parent / "target/data")
    assert "openshift/release-images:1.36.3-x86_64" in have
    assert "operators/example-operator-index:v1.36" in have
    assert Path(site.folder / "disk/working-dir/cluster-resources/idms-oc-mirror.yaml").is_file()
