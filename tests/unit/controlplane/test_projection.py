from __future__ import annotations

from tests.support.unit.controlplane import params
from tests.support.unit.hostedcluster import cluster

from hcp.controlplane.hostedcontrolplane import hosted_control_plane


def test_settings_that_say_nothing_are_not_projected() -> None:
    """Taken away by apply, the last field of a block leaves null behind, which the schema refuses."""

    def projected(**configuration: object) -> object:
        made = hosted_control_plane(params(), cluster(configuration=configuration))
        return made["spec"].get("configuration")

    assert projected() is None
    assert projected(apiServer={"servingCerts": {}}, proxy={}) is None
    assert projected(apiServer={"clientCA": {"name": "x"}, "servingCerts": {}}) == {
        "apiServer": {"clientCA": {"name": "x"}}
    }
