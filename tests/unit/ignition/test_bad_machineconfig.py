"""Configuration that has not the shape of its kind is named, wherever the mistake is."""

from __future__ import annotations

import pytest

from hcp.errors import HcpError
from hcp.ignition.machineconfig import interpret, joined, normalised

HEAD = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n"
BAD = [
    HEAD + "metadata: {name: 2020-01-01}\nspec: {}",
    HEAD + "metadata: 1\nspec: {}",
    HEAD + "metadata: {name: x}\nspec: 1",
    HEAD + "metadata: {name: x}\nspec: {config: [1]}",
    HEAD + "metadata: {name: x}\nspec: {config: {ignition: 3}}",
    HEAD + "metadata: {name: x}\nspec: {config: {ignition: {version: 3.2.0}, storage: {files: 5}}}",
    HEAD + "metadata: {name: x}\nspec: {config: {ignition: {version: 3.2.0}, storage: {files: [5]}}}",
    HEAD
    + "metadata: {name: x}\nspec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /a, contents: 5}]}}}",
    HEAD + "metadata: {name: x, labels: [1]}\nspec: {}",
    "kind: KubeletConfig\nspec: {kubeletConfig: [1, 2]}",
    "kind: KubeletConfig\nspec: {kubeletConfig: 5}",
    "kind: KubeletConfig\nspec: {machineConfigPoolSelector: {matchLabels: 5}}",
    "kind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: 5}",
    "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{}]}",
    "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: 5}",
    "kind: MachineConfig\n1: 2",
    "a: &a [1]\nb: *a",
    "[" * 100_000,
    "{a: " * 200 + "1" + "}" * 200,
    "x" * (2 << 20),
]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text.replace(HEAD, "")[:40])
def test_it_is_named(text: str) -> None:
    with pytest.raises(HcpError, match="ConfigMap 'x'"):
        normalised(text, "ConfigMap 'x'")


def test_what_is_well_formed_goes_on() -> None:
    good = HEAD + "metadata: {name: x}\nspec: {config: {ignition: {version: 3.2.0}}}"
    raw = joined(normalised(good, "ConfigMap 'x'"))
    assert interpret(raw).documents == [{"ignition": {"version": "3.2.0"}}]


def _with_file(contents: str) -> str:
    storage = f"storage: {{files: [{{path: /etc/a, {contents}}}]}}"
    return HEAD + "metadata: {name: x}\nspec: {config: {ignition: {version: 3.2.0}, " + storage + "}}"


@pytest.mark.parametrize("scheme", ["s3://bucket/a", "arn:aws:s3:::bucket/a", "gs://bucket/a", "ftp://a/b", "nothing"])
@pytest.mark.parametrize("where", ["contents: {source: 'SOURCE'}", "append: [{source: 'SOURCE'}]"])
def test_a_source_that_nodes_do_not_fetch_is_refused_with_those_they_do(scheme: str, where: str) -> None:
    """On a machine it would be a first boot that never ends."""
    raw = joined(normalised(_with_file(where.replace("SOURCE", scheme)), "ConfigMap 'x'"))
    with pytest.raises(HcpError, match="/etc/a with the source") as error:
        interpret(raw)
    assert "https:" in (error.value.hint or "")


@pytest.mark.parametrize("source", ["data:,hello", "HTTPS://example.com/a", "http://example.com/a", "tftp://a/b", ""])
def test_sources_that_nodes_fetch_go_on(source: str) -> None:
    raw = joined(normalised(_with_file(f"contents: {{source: '{source}'}}"), "ConfigMap 'x'"))
    assert interpret(raw).documents
