"""About how long things take."""

from __future__ import annotations

import pytest
from tests.support.unit.workshop import Workshop

from hcp.payload import estimates, progress


def test_the_last_time_on_this_machine_counts_more_than_the_table(workshop: Workshop) -> None:
    workshop.add("etcd")
    workshop.add("image-etcd", deps=("etcd",))
    assert estimates.to_make(["image-etcd"], workshop.registry, workshop.store) == 103
    staging = workshop.store.root / "staging"
    (staging / "bin").mkdir(parents=True)
    workshop.store.finish(staging, "etcd", "another-key", {"version": "0", "seconds": 7.5})
    assert estimates.seconds(["etcd", "rootfs-x"], workshop.store) == {"etcd": 7.5, "rootfs-x": 45.0}
    workshop.engine().ensure(["image-etcd"])
    assert estimates.to_make(["image-etcd"], workshop.registry, workshop.store) == 0


@pytest.mark.parametrize(
    ("number", "words"), [(5, "some seconds"), (60, "a minute"), (200, "3 min"), (2500, "42 min"), (5400, "1.5 h")]
)
def test_nobody_promises_seconds(number: float, words: str) -> None:
    assert progress.about(number) == words
