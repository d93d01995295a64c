"""Numbers that annotations give to processes."""

from __future__ import annotations

import pytest
from tests.support.unit import controlplane as sample

from hcp.api import names
from hcp.controlplane import apiserver, controller_manager, scheduler, tuning


def test_log_levels_reach_each_process() -> None:
    levels = {
        names.ANNOTATION_KAS_VERBOSITY: "6",
        names.ANNOTATION_KCM_VERBOSITY: "4",
        names.ANNOTATION_SCHEDULER_VERBOSITY: "10",
    }
    p = sample.params(annotations=levels)
    assert "--v=6" in apiserver.arguments(p)
    assert "--v=4" in controller_manager.arguments(p)
    assert "--v=10" in scheduler.arguments(p)
    for arguments in (apiserver.arguments, controller_manager.arguments, scheduler.arguments):
        assert "--v=1" in arguments(sample.params())


@pytest.mark.parametrize("key", tuning.KNOWN)
@pytest.mark.parametrize("bad", ["x", "-1", "1e9", "5 --insecure", "99999999999999999999", "²", "1\n"])
def test_what_a_process_could_not_read_is_left_out_and_named(key: str, bad: str) -> None:
    assert tuning.value({key: bad}, key, "usual") == "usual"
    [problem] = tuning.problems({key: bad})
    assert key in problem


@pytest.mark.parametrize(
    ("key", "good"),
    [
        (names.ANNOTATION_KAS_GOAWAY_CHANCE, "0.001"),
        (names.ANNOTATION_KAS_GOAWAY_CHANCE, "0.02"),
        (names.ANNOTATION_KAS_GOGC, "off"),
        (names.ANNOTATION_KAS_GOMEMLIMIT, "900MiB"),
        (names.ANNOTATION_KAS_MAX_INFLIGHT, "3000"),
        (names.ANNOTATION_KAS_VERBOSITY, "0"),
    ],
)
def test_what_it_can_read_is_handed_on(key: str, good: str) -> None:
    assert tuning.value({key: good}, key, "usual") == good
    assert tuning.problems({key: good}) == []
