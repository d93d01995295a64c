"""A node disk that boots with configuration of a pool's owner: kernel arguments, units, users, settings, tuning.

One machine without a cluster; a unit of the same configuration tells on the console what became of it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.e2e.own_configuration import document
from tests.support.e2e.own_machine import started
from tests.support.eventually import eventually_sync as eventually

from hcp.ignition.configdrive import config_drive

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module", params=[True, False], ids=["restarted", "at-once"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the machine says of itself, once everything was started."""
    folder: Path = tmp_path_factory.mktemp("machine")
    (folder / "drive.iso").write_bytes(config_drive(document(arguments=request.param), "own-1"))
    with started(folder, folder / "drive.iso") as console:

        def told() -> dict[str, str] | None:
            text = console.read_text(errors="replace")
            found = dict(re.findall(r"REPORT (\w+)=(.*?)\r?\n", text))
            return found if "end" in found else None

        try:
            found: dict[str, str] = eventually(told, "the report on the console", 1500)
            return {**found, "asked": str(request.param)}
        except AssertionError as error:
            raise AssertionError(f"{error}; its console:\n{console.read_text(errors='replace')[-4000:]}") from error


def test_the_kernel_was_started_with_the_arguments(report: dict[str, str]) -> None:
    asked = report["asked"] == "True"
    assert ("hugepagesz=2M hugepages=3 mitigations=auto printk.time=1" in report["cmdline"]) == asked
    assert report["hugepages"] == ("3" if asked else "0")


def test_settings_and_modules_hold(report: dict[str, str]) -> None:
    assert (report["swappiness"], report["map_count"]) == ("7", "300000")
    assert report["migration_cost"] == "4000000"
    assert report["module"] == "1"


def test_units_are_as_they_were_asked_for(report: dict[str, str]) -> None:
    assert report["ssh"] == "inactive"
    assert (report["instance"], report["timer"], report["kubelet"]) == ("active", "active", "active")
    assert report["dropin"] == "5" and report["journal"].split() == ["3", "3"]


def test_users_and_groups_are_there(report: dict[str, str]) -> None:
    assert "uid=1600(ops)" in report["user"] and "1500(builders)" in report["user"]
    assert report["group"].startswith("builders:x:1500:") and "AAAA" in report["keys"]


def test_kubelet_and_containerd_say_as_much_as_they_were_told(report: dict[str, str]) -> None:
    assert report["verbosity"] == "--v=4" and "warn" in report["containerd"]
