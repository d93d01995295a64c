"""Backups again and again: a CronJob in the operator's namespace, and rights for exactly what it reads.

It ends by itself with its cluster: the next run finds it gone and deletes the CronJob, which owns its account, and its
rights beside the HostedCluster; those in the hosted namespace go with that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.api.manifests import RBAC, account, binding, container_security, pod_security, role, rule, service_account
from hcp.backup import machines, objects
from hcp.backup.reaching import CLIENT_TLS
from hcp.kube import Client
from hcp.kube.resources import CRONJOBS, NODEPOOLS, ROLEBINDINGS, ROLES

Object = dict[str, Any]
CLAIM = "claim:"
_SECRETS = "/var/run/backup"
_FOLDER = "/backups"
_LABEL = f"{names.GROUP}/backup-of"
MEMBERS = tuple(f"etcd-{index}" for index in range(3))


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    cluster: Object
    image: str
    when: str
    # `s3://…`, or `claim:NAME` of the operator's namespace.
    store: str
    keep: int
    # In the operator's namespace: `passphrase` or `key`, and credentials of the object store.
    secret: str
    lock: str
    operator_namespace: str = names.OPERATOR_NAMESPACE
    pull_secrets: Sequence[Object] = ()
    words: Sequence[str] = ()
    # By which pods may read the Secret and write into a claim; OpenShift gives one of its own.
    group: int | None = 1001

    @property
    def hosted(self) -> str:
        meta = self.cluster["metadata"]
        return names.control_plane_namespace(meta["namespace"], meta["name"])

    @property
    def name(self) -> str:
        return job_name(self.hosted)


def job_name(hosted: str) -> str:
    """At most 52 characters, as CronJobs want it; two long names that begin alike are kept apart by a sum."""
    whole = f"backup-{hosted}"
    return whole if len(whole) <= 52 else f"{whole[:43]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def cron_job(plan: Plan) -> Object:
    meta = plan.cluster["metadata"]
    claimed = plan.store.removeprefix(CLAIM) if plan.store.startswith(CLAIM) else ""
    words = [
        *("backup", "create", meta["name"], f"--namespace={meta['namespace']}"),
        f"--store={_FOLDER if claimed else plan.store}",
        f"--keep={plan.keep}",
        f"--{plan.lock}-file={_SECRETS}/{plan.lock}",
        f"--scheduled-by={plan.operator_namespace}/{plan.name}",
        *plan.words,
    ]
    volumes: list[Object] = [
        {"name": "tmp", "emptyDir": {}},
        {"name": "secret", "secret": {"secretName": plan.secret, "defaultMode": 0o440}},
    ]
    mounts: list[Object] = [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "secret", "mountPath": _SECRETS, "readOnly": True},
    ]
    if claimed:
        volumes.append({"name": "backups", "persistentVolumeClaim": {"claimName": claimed}})
        mounts.append({"name": "backups", "mountPath": _FOLDER})
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    container: Object = {
        "name": "backup",
        "image": plan.image,
        "imagePullPolicy": "IfNotPresent",
        "args": words,
        "env": [
            {"name": key, "valueFrom": {"secretKeyRef": {"name": plan.secret, "key": key, "optional": True}}}
            for key in keys
        ],
        "resources": {"requests": {"cpu": "50m", "memory": "100Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod: Object = {
        "serviceAccountName": plan.name,
        "restartPolicy": "Never",
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": volumes,
    }
    if plan.group is not None:
        pod["securityContext"] |= {"fsGroup": plan.group, "fsGroupChangePolicy": "OnRootMismatch"}
    if plan.pull_secrets:
        pod["imagePullSecrets"] = list(plan.pull_secrets)
    labels = {_LABEL: plan.hosted}
    spec: Object = {
        "schedule": plan.when,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        # One that was missed by more than an hour waits for the next date.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": labels},
            "spec": {"backoffLimit": 2, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": plan.name, "namespace": plan.operator_namespace, "labels": labels},
        "spec": spec,
    }


def own_rights(plan: Plan, job_uid: str) -> list[Object]:
    """The account, and that it may end its own schedule; all of it goes with the CronJob."""
    job = _owner("batch/v1", "CronJob", plan.name, job_uid)
    itself = [_only(rule("batch", "cronjobs", ["delete"]), [plan.name])]
    found = [
        service_account(plan.name, plan.operator_namespace),
        role(plan.name, plan.operator_namespace, itself),
        binding(plan.name, plan.operator_namespace, _who(plan)),
    ]
    return [_owned(one, job) for one in found]


def role_beside(plan: Plan, given: Sequence[str]) -> Object:
    """Beside the HostedCluster; `given` are the Secrets and ConfigMaps that it names."""
    meta = plan.cluster["metadata"]
    rules = [
        _only(rule(names.GROUP, "hostedclusters", ["get"]), [meta["name"]]),
        rule(names.GROUP, "nodepools", ["list"]),
        _only(rule("", "secrets configmaps", ["get"]), sorted(given)),
        # Its own end, when the cluster is gone.
        _only(rule(RBAC, "roles", ["delete"]), [plan.name]),
    ]
    return role(plan.name, meta["namespace"], rules)


def binding_beside(plan: Plan, role_uid: str) -> Object:
    """Goes with its role: whoever deletes that has no rights left to delete anything else."""
    made = binding(plan.name, plan.cluster["metadata"]["namespace"], _who(plan))
    return _owned(made, _owner(f"{RBAC}/v1", "Role", plan.name, role_uid))


def rights_inside(plan: Plan) -> list[Object]:
    """In the hosted namespace, with which they go."""
    rules = [
        *_machine_rules(plan),
        _only(rule("", "secrets", ["get"]), [*objects.KEYS, CLIENT_TLS]),
        _only(rule("", "pods", ["get"]), list(MEMBERS)),
        # A websocket begins with a GET; newer servers ask for the right to create as well.
        _only(rule("", "pods/portforward", ["get", "create"]), list(MEMBERS)),
    ]
    return [role(plan.name, plan.hosted, rules), binding(plan.name, plan.hosted, _who(plan))]


def _machine_rules(plan: Plan) -> list[Object]:
    """Machines are kept where they outlive their management cluster."""
    if machines.place(plan.cluster, (), plan.hosted) is None:
        return []
    groups: dict[str, list[str]] = {}
    for resource in machines.RESOURCES:
        groups.setdefault(resource.group, []).append(resource.plural)
    return [rule(group, " ".join(kinds), ["list"]) for group, kinds in groups.items()]


def _who(plan: Plan) -> Object:
    return account(plan.name, plan.operator_namespace)


def _only(made: Object, called: list[str]) -> Object:
    return {**made, "resourceNames": called}


def _owner(version: str, kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid}


def _owned(made: Object, owner: Object) -> Object:
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}


async def begin(client: Client, plan: Plan) -> None:
    """Or change one that is there."""
    pools = await client.list(NODEPOOLS, plan.cluster["metadata"]["namespace"])
    mine = [one for one in pools if one["spec"].get("clusterName") == plan.cluster["metadata"]["name"]]
    beside = await client.apply(role_beside(plan, sorted(objects.named(plan.cluster, mine))))
    await client.apply(binding_beside(plan, beside["metadata"]["uid"]))
    for one in rights_inside(plan):
        await client.apply(one)
    job = await client.apply(cron_job(plan))
    for one in own_rights(plan, job["metadata"]["uid"]):
        await client.apply(one)


async def end(client: Client, job: str, cluster_namespace: str, hosted: str = "") -> bool:
    """Take it away; whether there was one. `hosted` is empty where that namespace is gone."""
    namespace, _, name = job.partition("/")
    there = await client.delete(CRONJOBS, name, namespace, propagation="Background", missing_ok=True)
    if hosted:
        await client.delete(ROLEBINDINGS, name, hosted, missing_ok=True)
        await client.delete(ROLES, name, hosted, missing_ok=True)
    # The last one: with it goes the right to do any of this.
    await client.delete(ROLES, name, cluster_namespace, propagation="Background", missing_ok=True)
    return there is not None
