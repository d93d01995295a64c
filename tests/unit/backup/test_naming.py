"""Names of backups can be read back, and none of them is a path."""

from __future__ import annotations

import datetime as dt

import pytest

from hcp.backup import naming, retention
from hcp.backup.naming import Name
from hcp.errors import HcpError


def test_a_name_says_which_cluster_and_when() -> None:
    made = naming.new("clusters", "de-mo", dt.datetime(2026, 1, 31, 2, 0, tzinfo=dt.UTC))
    assert str(made) == "clusters_de-mo_20260131T020000Z"
    assert naming.read(str(made)) == naming.from_file(made.file) == made
    assert made.created == dt.datetime(2026, 1, 31, 2, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../a_b_20260131T020000Z",
        "a/b_c_20260131T020000Z",
        "a_b_20260131T020000Z/../x",
        "a_b_20260230T020000Z",
        "A_b_20260131T020000Z",
        "a_b_c_20260131T020000Z",
        "a_b_20260131T020000Z\n",
        ".unfinished-a_b_20260131T020000Z",
    ],
)
def test_anything_else_is_no_name(text: str) -> None:
    assert naming.read(text) is None
    with pytest.raises(HcpError, match="no name of a backup"):
        naming.asked(text)


def named(cluster: str, day: int, namespace: str = "clusters") -> Name:
    return Name(namespace, cluster, f"202601{day:02}T000000Z")


def test_the_newest_of_a_cluster_is_found_among_others() -> None:
    found = [named("demo", 3), named("demo", 9), named("other", 20), named("demo", 25, "teams")]
    assert naming.newest(found, "clusters", "demo") == named("demo", 9)
    assert naming.newest(found, "clusters", "none") is None


def test_retention_lets_the_oldest_of_one_cluster_go_and_touches_no_other() -> None:
    found = [named("demo", day) for day in (5, 1, 9, 3)] + [named("other", 1), named("demo", 1, "teams")]
    assert retention.surplus(found, "clusters", "demo", 2) == [named("demo", 1), named("demo", 3)]
    assert retention.surplus(found, "clusters", "demo", 4) == []
    assert retention.surplus(found, "clusters", "demo", 0) == []
