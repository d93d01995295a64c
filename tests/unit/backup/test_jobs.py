"""The schedule of a cluster's backups: what its account may do is written out, name by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hcp.backup import jobs
from hcp.backup.jobs import Plan

CLUSTER = {
    "metadata": {"name": "demo", "namespace": "clusters", "uid": "c"},
    "spec": {"pullSecret": {"name": "pull"}},
}
PLAN = Plan(CLUSTER, "hcp:1", "0 2 * * *", "s3://b/x", 7, "backup", "passphrase", words=("--s3-region=here",))


def pod(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = jobs.cron_job(plan)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return found


def test_every_right_but_the_list_of_pools_is_for_named_objects() -> None:
    made = [*jobs.own_rights(PLAN, "j"), jobs.role_beside(PLAN, ["pull"]), *jobs.rights_inside(PLAN)]
    rules = [one for role in made if role["kind"] == "Role" for one in role["rules"]]
    assert [one["resources"] for one in rules if "resourceNames" not in one] == [["nodepools"]]
    assert all(set(one["verbs"]) <= {"get", "list", "create", "delete"} for one in rules)
    assert [one["resources"] for one in rules if "delete" in one["verbs"]] == [["cronjobs"], ["roles"]]
    assert [one["resources"] for one in rules if "create" in one["verbs"]] == [["pods/portforward"]]
    assert {one["kind"] for one in made} == {"ServiceAccount", "Role", "RoleBinding"}


def test_where_machines_outlive_their_management_cluster_they_may_be_listed_and_nothing_else() -> None:
    spec = {"infraID": "x", "platform": {"kubevirt": {"credentials": {"infraNamespace": "vms"}}}}
    external = replace(PLAN, cluster={**PLAN.cluster, "spec": spec})
    rules = [one for one in jobs.rights_inside(external)[0]["rules"] if "resourceNames" not in one]
    assert {kind for one in rules for kind in one["resources"]} == {
        *("machines", "machinesets", "kubevirtmachines", "kubevirtmachinetemplates")
    }
    assert all(one["verbs"] == ["list"] for one in rules)


def test_all_of_it_goes_with_the_schedule_or_the_cluster() -> None:
    owners = [one["metadata"]["ownerReferences"][0]["kind"] for one in jobs.own_rights(PLAN, "j")]
    assert owners == ["CronJob"] * 3
    assert jobs.binding_beside(PLAN, "r")["metadata"]["ownerReferences"][0]["uid"] == "r"
    assert {one["metadata"]["namespace"] for one in jobs.rights_inside(PLAN)} == {"clusters-demo"}


def test_secrets_come_from_a_secret_and_are_on_no_command_line() -> None:
    found = pod(PLAN)
    [container] = found["containers"]
    assert "--passphrase-file=/var/run/backup/passphrase" in container["args"]
    assert "--store=s3://b/x" in container["args"]
    assert {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]} == {"backup"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert found["securityContext"]["runAsNonRoot"] is True


def test_a_claim_is_mounted_and_is_then_a_folder() -> None:
    found = pod(replace(PLAN, store="claim:backups", lock="key"))
    assert "--store=/backups" in found["containers"][0]["args"]
    assert "--key-file=/var/run/backup/key" in found["containers"][0]["args"]
    assert {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}} in found["volumes"]
    assert "backups" not in json.dumps(pod(PLAN)["volumes"])


def test_a_long_name_is_cut_and_stays_unique() -> None:
    one, two = jobs.job_name("clusters-" + "a" * 60 + "x"), jobs.job_name("clusters-" + "a" * 60 + "y")
    assert len(one) == len(two) == 52
    assert one != two
