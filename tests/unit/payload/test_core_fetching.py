"""What makes one component is fetched some files at a time."""

from __future__ import annotations

import threading

import pytest

from hcp.payload import Download
from hcp.payload.fetching import at_once
from hcp.payload.official import OfficialImage
from hcp.payload.registry import default_registry


def test_so_many_go_on_at_once_and_all_are_done() -> None:
    both = threading.Barrier(2, timeout=60)  # neither passes alone
    done: list[int] = []

    def job(number: int) -> None:
        both.wait()
        done.append(number)

    at_once([lambda number=number: job(number) for number in range(4)], 2)  # type: ignore[misc]
    assert sorted(done) == [0, 1, 2, 3]


def test_after_an_error_none_begins_and_those_that_had_begun_are_waited_for() -> None:
    begun, failed, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        assert failed.wait(60)
        done.append("slow")

    def bad() -> None:
        assert begun.wait(60)
        failed.set()
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        at_once([slow, bad, slow], 2)
    assert done[0] == "slow"


def test_of_kubernetes_only_what_no_image_has_is_fetched_unpacked() -> None:
    for minor in ("1.34", "1.35", "1.36", "1.37"):
        component = default_registry().get(f"kubernetes-{minor}")
        files = {path for item in component.downloads if isinstance(item, Download) for path in item.members.values()}
        packed = {
            path for item in component.downloads if isinstance(item, OfficialImage) for path in item.members.values()
        }
        assert files == {"bin/kubelet", "bin/kubectl"}
        assert not files & packed
        assert files | packed == set(component.outputs)
