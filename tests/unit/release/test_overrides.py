"""Images in place of a release's."""

from __future__ import annotations

from hcp.release import overrides

RELEASE = {"etcd": "r.test/etcd@sha256:" + "1" * 64, "coredns": "r.test/coredns:1"}


def test_an_override_takes_the_place_of_the_releases_image() -> None:
    text = " etcd=mirror.example/etcd:3 , coredns=mirror.example/dns@sha256:" + "2" * 64
    assert overrides.applied(RELEASE, text) == {
        "etcd": "mirror.example/etcd:3",
        "coredns": "mirror.example/dns@sha256:" + "2" * 64,
    }
    assert overrides.problems(RELEASE, text) == []
    assert overrides.applied(RELEASE, "") == RELEASE


def test_what_has_no_effect_is_named_and_adds_nothing() -> None:
    text = "etcd,coredns=NOT AN IMAGE,router=r.test/router:1"
    assert overrides.applied(RELEASE, text) == RELEASE
    found = overrides.problems(RELEASE, text)
    assert len(found) == 3
    assert "router" in found[2]


def test_a_list_without_end_is_cut() -> None:
    assert overrides.parse(",".join(f"a{n}=r.test/x:{n}" for n in range(500)))[1] == ["400 more than 100 entries"]
