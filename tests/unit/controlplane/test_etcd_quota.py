"""The quota of etcd follows its volume, so that a full etcd can always be healed."""

from __future__ import annotations

import pytest

from hcp.controlplane import etcd

GIB = 1024**3


@pytest.mark.parametrize("size", ["1Gi", "2Gi", "8Gi", "16G", "20Gi"])
def test_two_databases_and_the_logs_fit_into_the_volume(size: str) -> None:
    from hcp.runtime import quantity

    volume = int(quantity.parse(size) or 0)
    assert 2 * etcd.quota(size) + etcd.LOGS <= volume
    assert etcd.quota(size) >= 0.25 * volume


def test_the_quota_has_bounds() -> None:
    assert etcd.quota("1Ti") == 8 * GIB
    assert etcd.quota("1Mi") == 16 * 1024**2
    assert etcd.quota("4Gi") < etcd.quota("8Gi")
