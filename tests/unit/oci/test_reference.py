"""Image references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.unit.oci import DIGEST, references

from hcp.errors import HcpError
from hcp.oci import Reference


@given(references)
def test_text_and_back_is_the_same(ref: Reference) -> None:
    assert Reference.parse(str(ref)) == ref


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_with_a_sentence(text: str) -> None:
    try:
        ref = Reference.parse(text)
    except HcpError as exc:
        assert exc.hint
    else:
        assert Reference.parse(str(ref)) == ref


@given(references, st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True))
def test_pinning_keeps_the_name_and_decides_the_version(ref: Reference, digest: str) -> None:
    pinned = ref.with_digest(digest)
    assert (pinned.name, pinned.version, pinned.tag) == (ref.name, digest, None)


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("nginx", "docker.io", "library/nginx", None, None),
        ("nginx:1", "docker.io", "library/nginx", "1", None),
        ("org/app", "docker.io", "org/app", None, None),
        ("index.docker.io/nginx", "docker.io", "library/nginx", None, None),
        ("quay.io/a/b:c", "quay.io", "a/b", "c", None),
        ("localhost/x", "localhost", "x", None, None),
        ("localhost:5000/x:y", "localhost:5000", "x", "y", None),
        ("registry.hcp.test:5000/hcp/release:1.36.3", "registry.hcp.test:5000", "hcp/release", "1.36.3", None),
        (f"quay.io/a/b@{DIGEST}", "quay.io", "a/b", None, DIGEST),
        (f"quay.io/a/b:t@{DIGEST}", "quay.io", "a/b", "t", DIGEST),
        ("[::1]:5000/a", "[::1]:5000", "a", None, None),
        (" quay.io/a/b \n", "quay.io", "a/b", None, None),
    ],
)
def test_known_forms(text: str, registry: str, repository: str, tag: str | None, digest: str | None) -> None:
    assert Reference.parse(text) == Reference(registry, repository, tag, digest)


@pytest.mark.parametrize(
    "text",
    ["", "/", "a b", "quay.io/", "quay.io/A", "quay.io/a:", "quay.io/a:b:c", "a@sha256:12", "a@", "x//y", "q.io/a/"],
)
def test_bad_references_are_refused(text: str) -> None:
    with pytest.raises(HcpError, match="is not an image reference"):
        Reference.parse(text)


def test_docker_hub_answers_at_another_host() -> None:
    assert Reference.parse("nginx").host == "registry-1.docker.io"
    assert Reference.parse("quay.io/a/b").host == "quay.io"
    assert Reference.parse("nginx").version == "latest"
