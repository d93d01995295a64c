"""The image set configuration: the guide's documents, and every wrong one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hcp.errors import HcpError
from hcp.mirror.config import Chart, Package, ReleaseChannel, Versions, parse

HEAD = {"apiVersion": "mirror.openshift.io/v2alpha1", "kind": "ImageSetConfiguration"}


def test_a_document_with_everything() -> None:
    found = parse(
        HEAD
        | {
            "archiveSize": 4,
            "mirror": yaml.safe_load(
                """
platform:
  channels:
  - {name: candidate-4.17, minVersion: 4.17.0-rc.1, maxVersion: 4.17.3, type: ocp, shortestPath: true}
  architectures: [amd64, arm64]
  kubeVirtContainer: true
  graph: true
additionalImages:
- name: quay.io/karmab/curl:latest
- {name: quay.io/karmab/kcli, targetRepo: tools/kcli, targetTag: v1}
blockedImages:
- name: quay.io/karmab/.*
operators:
- catalog: registry.redhat.io/redhat/redhat-operator-index:v4.17
  packages:
  - name: lvms-operator
  - {name: odf-operator, channels: [{name: stable-4.17, minVersion: 4.17.0}]}
  - {name: metallb-operator, minVersion: 4.17.1, defaultChannel: stable}
helm:
  repositories:
  - {name: r, url: "https://charts.example.com", charts: [{name: c, version: 1.2.3}]}
  local:
  - {name: own, path: /charts/own, imagePaths: ["{.spec.image}"]}
"""
            ),
        }
    )
    (channel,) = found.platform.channels
    assert channel == ReleaseChannel("candidate-4.17", "4.17.0-rc.1", "4.17.3", shortest_path=True)
    assert (found.platform.architectures, found.platform.boot_disk, found.platform.graph) == (
        ("amd64", "arm64"),
        True,
        True,
    )
    assert found.catalogs[0].packages[1] == Package("odf-operator", channels=(Versions("stable-4.17", "4.17.0"),))
    assert found.additional[1].target_repository == "tools/kcli"
    assert found.charts[0] == Chart("c", "1.2.3", "https://charts.example.com")
    assert found.charts[1].image_paths == ("{.spec.image}",)
    assert (found.archive_size, found.blocked) == (4, ("quay.io/karmab/.*",))


def test_a_release_can_be_named_alone() -> None:
    release = "registry.ci.openshift.org/ocp/release:4.17.0-0.nightly"
    found = parse(HEAD | {"mirror": {"platform": {"graph": True, "release": release, "kubeVirtContainer": True}}})
    assert found.platform.releases == (release,)


@pytest.mark.parametrize(
    ("document", "sentence", "hint"),
    [
        ("text", "is no YAML mapping", "kind: ImageSetConfiguration"),
        (
            HEAD | {"apiVersion": "mirror.openshift.io/v1alpha2"},
            'the apiVersion "mirror.openshift.io/v1alpha2"',
            "storageConfig",
        ),
        (HEAD | {"kind": "DeleteImageSetConfiguration"}, "is of kind", "ImageSetConfiguration"),
        (HEAD, "asks for nothing", "additionalImages"),
        (HEAD | {"miror": {}}, "miror of the image set", "did you mean mirror?"),
        (HEAD | {"mirror": {"storageConfig": {}}}, "mirror.storageConfig", "known there: platform"),
        (HEAD | {"mirror": {"operators": [{"packages": []}]}}, "mirror.operators[0].catalog", "write catalog: …"),
        (HEAD | {"mirror": {"operators": {"catalog": "x"}}}, "mirror.operators of", "each with a dash"),
        (HEAD | {"mirror": {"additionalImages": ["a/b"]}}, "additionalImages[0] of", "- name"),
        (HEAD | {"mirror": {"platform": {"architectures": ["x86_64"]}}}, "architectures", "amd64"),
        (HEAD | {"mirror": {"platform": {"graph": "yes"}}}, "neither true nor false", "true or false"),
        (HEAD | {"archiveSize": "4G", "mirror": {}}, "archiveSize", "GiB"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(document: Any, sentence: str, hint: str) -> None:
    with pytest.raises(HcpError) as caught:
        parse(document)
    assert sentence in str(caught.value)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("channel", "sentence"),
    [
        ({"name": "c", "minVersion": 4.17}, 'write it in quotes: "4.17"'),
        ({"name": "c", "minVersion": "4.x.y-build>"}, "is no version"),
        ({"name": "c", "minVersion": "4.17.3", "maxVersion": "4.17.1"}, "newer than maxVersion 4.17.1"),
        ({"name": "c", "type": "k8s"}, "allowed: ocp, okd"),
    ],
)
def test_channels_with_wrong_versions(channel: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HcpError) as caught:
        parse(HEAD | {"mirror": {"platform": {"channels": [channel]}}})
    assert sentence in f"{caught.value} {caught.value.hint}"


def test_versions_and_channels_of_a_package_exclude_each_other() -> None:
    package = {"name": "p", "minVersion": "1.0.0", "channels": [{"name": "stable"}]}
    with pytest.raises(HcpError, match="channels are named"):
        parse(HEAD | {"mirror": {"operators": [{"catalog": "a/b:c", "packages": [package]}]}})
