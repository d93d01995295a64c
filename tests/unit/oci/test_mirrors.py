"""Which places are asked for an image."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.support.unit.oci import DIGEST, references

from hcp.oci import Mirror, Reference
from hcp.oci.mirrors import candidates, from_image_content_sources, from_objects, matches, override


@pytest.mark.parametrize(
    ("source", "image", "fits"),
    [
        ("quay.io", "quay.io/a/b", True),
        ("quay.io/a", "quay.io/a/b:t", True),
        ("quay.io/a/b", f"quay.io/a/b@{DIGEST}", True),
        ("quay.io/a/b", "quay.io/a/b:t", True),
        ("quay.io/a/b", "quay.io/a/bc", False),
        ("quay.io", "quay.io:5000/a", False),
        ("quay.io:5000", "quay.io:5000/a", True),
        ("quay.io", "quay.io.example.com/a", False),
        ("*.example.com", "r.example.com/a", True),
        ("*.example.com", "r.example.com:5000/a", True),
        ("*.example.com", "example.com/a", False),
        ("*.example.com", "r.example.org/a", False),
        ("", "quay.io/a", False),
    ],
)
def test_a_source_matches_whole_parts_only(source: str, image: str, fits: bool) -> None:
    assert matches(source, image) is fits


def places(image: str, *mirrors: Mirror) -> list[str]:
    return [str(c) for c in candidates(Reference.parse(image), mirrors)]


def test_the_longest_source_decides_and_the_source_comes_last() -> None:
    short = Mirror("quay.io", ("m1.io/q",))
    long = Mirror("quay.io/a", ("m2.io/x", "m3.io:5000/y"))
    image = f"quay.io/a/b@{DIGEST}"
    assert places(image, short, long) == [f"m2.io/x/b@{DIGEST}", f"m3.io:5000/y/b@{DIGEST}", image]
    assert places("quay.io/z/b:t", short, long) == ["m1.io/q/z/b:t", "quay.io/z/b:t"]
    assert places("other.io/b:t", short, long) == ["other.io/b:t"]


def test_entries_of_the_same_source_add_up_and_the_source_may_be_left_out() -> None:
    one = Mirror("quay.io/a", ("m1.io/a",))
    two = Mirror("quay.io/a", ("m1.io/a", "m2.io/a"), never_source=True)
    assert places("quay.io/a/b:t", one, two) == ["m1.io/a/b:t", "m2.io/a/b:t"]


def test_a_mirror_of_a_whole_registry_may_be_a_bare_host_or_a_path() -> None:
    assert places("quay.io/a/b:t", Mirror("quay.io", ("m.io:5000",)))[0] == "m.io:5000/a/b:t"
    assert places("r.example.com/a/b:t", Mirror("*.example.com", ("m.io/all",)))[0] == "m.io/all/a/b:t"


def test_tag_mirrors_are_for_tags() -> None:
    tags = Mirror("quay.io", ("m.io",), only="tag")
    assert places("quay.io/a/b:t", tags)[0] == "m.io/a/b:t"
    assert places(f"quay.io/a/b@{DIGEST}", tags) == [f"quay.io/a/b@{DIGEST}"]


def test_a_mirror_that_makes_no_reference_is_left_out() -> None:
    assert places("quay.io/a/b:t", Mirror("quay.io", ("NOT A HOST",))) == ["quay.io/a/b:t"]


def test_cluster_objects_and_image_content_sources_are_read() -> None:
    idms = {
        "metadata": {"name": "b"},
        "spec": {
            "imageDigestMirrors": [
                {"source": "quay.io/a", "mirrors": ["m.io/a"], "mirrorSourcePolicy": "NeverContactSource"}
            ]
        },
    }
    icsp = {"metadata": {"name": "a"}, "spec": {"repositoryDigestMirrors": [{"source": "x.io", "mirrors": ["y.io"]}]}}
    itms = {"metadata": {"name": "c"}, "spec": {"imageTagMirrors": [{"source": "t.io", "mirrors": ["u.io"]}]}}
    assert from_objects([idms, icsp, itms]) == [
        Mirror("x.io", ("y.io",)),
        Mirror("quay.io/a", ("m.io/a",), never_source=True),
        Mirror("t.io", ("u.io",), only="tag"),
    ]
    assert from_image_content_sources([{"source": "s.io", "mirrors": ["m.io"]}, {"source": ""}]) == [
        Mirror("s.io", ("m.io",))
    ]
    assert from_image_content_sources(None) == []


def test_overrides_rewrite_by_the_longest_source() -> None:
    table = {"quay.io": "m.io/q", "quay.io/a": "n.io/a", "": "never"}
    assert override(f"quay.io/a/b@{DIGEST}", table) == f"n.io/a/b@{DIGEST}"
    assert override("quay.io/z:t", table) == "m.io/q/z:t"
    assert override("quay.io:5000/z:t", table) == "quay.io:5000/z:t"


@given(references)
def test_every_candidate_keeps_tag_and_digest(ref: Reference) -> None:
    mirrors = [Mirror(ref.registry, ("mirror.example.com:5000/deep/path",)), Mirror(ref.name, ("m.io/x",))]
    found = candidates(ref, mirrors)
    assert found[-1] == ref
    assert all((c.tag, c.digest) == (ref.tag, ref.digest) for c in found)
