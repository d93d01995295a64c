"""The table of controllers: it names what runs, and every condition has one owner."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.unit.hostedcluster import cluster, deployment, etcd

from hcp.api import conditions as c
from hcp.api import names
from hcp.guest.migration import Told
from hcp.guest.state import GuestState
from hcp.hostedcluster import status
from hcp.hostedcluster.hibernation import Sleep
from hcp.hostedcluster.observed import LoginState, Names, Observed, StorageState
from hcp.hostedcluster.update_status import Updates
from hcp.kube import Client, ClusterConfig
from hcp.operator import wiring
from hcp.operator.controllers import CLUSTER, CONTROLLERS, HOSTED_CLUSTER_CONDITIONS, POOL, table
from hcp.operator.support import Support
from hcp.runtime import EventRecorder
from hcp.runtime.context import Guests, Informers, OperatorContext

DOCS = Path(__file__).parents[3] / "docs" / "controllers.md"
# Read by the command line on clusters of another operator; ours never sets them.
OF_OTHERS = {
    c.CLOUD_RESOURCES_DESTROYED,
    c.CLUSTER_VERSION_FAILING,
    c.CVO_SCALED_DOWN,
    c.ETCD_RECOVERY_ACTIVE,
}


def types() -> set[str]:
    """The condition types that api/conditions.py declares: everything above its reasons."""
    source = Path(str(c.__file__)).read_text().partition("\n# Reasons")[0]
    return {
        str(getattr(c, line.split(" = ")[0])) for line in source.splitlines() if " = " in line and line[0].isupper()
    }


def test_every_condition_has_one_owner() -> None:
    for kind in (CLUSTER, POOL):
        owners = Counter(condition for entry in CONTROLLERS for condition in entry.owns.get(kind, ()))
        assert [name for name, count in owners.items() if count > 1] == [], kind
    owned = {condition for entry in CONTROLLERS for kinds in entry.owns.values() for condition in kinds}
    assert types() == owned | OF_OTHERS


def test_the_status_of_a_hosted_cluster_sets_only_what_its_controller_owns() -> None:
    seen = Observed(
        etcd=etcd(),
        deployments={"kube-apiserver": deployment("kube-apiserver")},
        encryption="Done",
        certificates=(True, c.AS_EXPECTED, ""),
        ignition_ready=True,
        credentials_problem="",
        guest=GuestState(reachable=True),
        storage=StorageState(missing=("csi-external-provisioner",)),
        updates=Updates(),
        stored=Told("1.36", True),
        login=LoginState(direct=True),
        proxy=(),
        external_names=Names(("api.example.com",), ()),
        sleep=Sleep(stage=c.AWAKE),
    )
    unmanaged = {"endpoint": "https://etcd.example.com:2379"}
    made = cluster(
        controllerAvailabilityPolicy="HighlyAvailable",
        etcd={"unmanaged": unmanaged},
        channel="stable",
        kubeAPIServerDNSName="api.example.com",
    )
    made["metadata"]["annotations"] = {
        names.ANNOTATION_RESTORE_SNAPSHOT: "a" * 64,
        names.ANNOTATION_RESTORED_FROM_BACKUP: "clusters_demo_20260131T020000Z",
    }
    found = {x["type"] for x in status.compute(made, seen, "2026-01-01T00:00:00Z")["conditions"]}
    assert found == set(HOSTED_CLUSTER_CONDITIONS) - {c.HOSTED_CLUSTER_DESTROYED}


def test_the_table_names_what_runs_in_the_process() -> None:
    client = Client(ClusterConfig(server="https://127.0.0.1:1"))
    ctx = OperatorContext(client, Informers(client), Guests(client, inside=False), EventRecorder(client, "test"))
    running = [one.name for one in wiring.everything(ctx, Support(), own_cluster_api=True)]
    assert running == [entry.name for entry in CONTROLLERS]


def test_the_documentation_has_the_table() -> None:
    assert table() in DOCS.read_text()
