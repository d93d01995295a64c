"""Cluster API and its KubeVirt provider: one of each per management cluster, kept by the leading operator.

A management cluster that already has Cluster API keeps its own: definitions that are not ours are not touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of, at, labels_of
from hcp.controlplane.meta import digest
from hcp.kube import Client
from hcp.kube.follow import follow
from hcp.kube.resources import CRDS
from hcp.operator.support import Support
from hcp.runtime.conditions import is_true

log = logging.getLogger(__name__)
Object = dict[str, Any]
DEFINITION_HASH = f"{names.GROUP}/definition-hash"
WEBHOOK_SECRET = "capi-webhooks-tls"
WEBHOOK_DIR = "/tmp/k8s-webhook-server/serving-certs"
ESTABLISH_TIMEOUT = 60.0
# component -> (Deployment and account name, binary, memory)
MANAGERS = {
    "cluster-api": (names.CAPI_CORE, "/cluster-api-manager", "64Mi"),
    "cluster-api-kubevirt": (names.CAPI_PROVIDER, "/cluster-api-kubevirt-manager", "64Mi"),
}


def definition(component: str, crd: Mapping[str, Any]) -> Object:
    """A CRD with the labels by which Cluster API finds the version of a contract."""
    served = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY, "cluster.x-k8s.io/v1beta1": served[0]}
    if component == "cluster-api-kubevirt":
        labels["cluster.x-k8s.io/provider"] = "kubevirt"
    metadata = crd["metadata"]
    annotations = {DEFINITION_HASH: digest(crd["spec"], labels)}
    return {
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": {"name": metadata["name"], "labels": labels, "annotations": annotations},
        "spec": crd["spec"],
    }


def deployment(component: str, image: str, ns: str) -> Object:
    """One manager for all hosted namespaces."""
    name, binary, memory = MANAGERS[component]
    labels = {"app": name, names.LABEL_COMPONENT: name}
    args = [binary, "--leader-elect=true", "--v=1", f"--webhook-cert-dir={WEBHOOK_DIR}"]
    if component == "cluster-api":
        args += ["--diagnostics-address=127.0.0.1:8080", "--insecure-diagnostics=true"]
        # What nobody uses here would want to follow more kinds, and the Secrets of all namespaces.
        args += ["--feature-gates=MachineSetPreflightChecks=false,ClusterResourceSet=false,MachinePool=false"]
        args += ["--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=45s"]
        args += ["--leader-elect-retry-period=10s"]
        # The definitions are ours, with one version: nothing to migrate, and no right to change them is needed.
        args += ["--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields"]
    else:
        args = [a for a in args if not a.startswith("--webhook-cert-dir")]
    # Patient: on a crowded machine a restart makes everything worse.
    probe = {
        "httpGet": {"path": "/healthz", "port": 9440},
        "periodSeconds": 20,
        "timeoutSeconds": 10,
        "failureThreshold": 6,
    }
    container = {
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": args,
        "env": [{"name": "GOGC", "value": "50"}, {"name": "GOMEMLIMIT", "value": "900MiB"}],
        "ports": [{"name": "healthz", "containerPort": 9440, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": memory}, "limits": {"memory": "1Gi"}},
        "readinessProbe": {
            **probe,
            "httpGet": {"path": "/readyz", "port": 9440},
            "periodSeconds": 2,
        },
        "livenessProbe": probe,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        "volumeMounts": [{"name": "webhook-tls", "mountPath": WEBHOOK_DIR, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": name,
        "priorityClassName": names.PRIORITY_OPERATOR,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1001,
            "fsGroup": 1001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "webhook-tls", "secret": {"secretName": WEBHOOK_SECRET, "defaultMode": 0o440}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": ns, "labels": {**labels, names.LABEL_MANAGED_BY: names.MANAGED_BY}},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


async def ensure_definitions(client: Client, support: Support) -> bool:
    """Apply the CRDs that are ours and wait until they are served; whether Cluster API is ours here."""
    wanted = [definition(component, crd) for component, crds in support.crds.items() for crd in crds]
    if not wanted:
        log.warning("no definitions of Cluster API are at hand, machines will not work")
        return False
    live = {o["metadata"]["name"]: o for o in await client.list(CRDS)}
    core = live.get("clusters.cluster.x-k8s.io")
    if core is not None and not _ours(core):
        log.info("this cluster has its own Cluster API, it is used as it is")
        return False
    mine = [w for w in wanted if _stale(live.get(w["metadata"]["name"]), w)]
    limit = asyncio.Semaphore(4)

    async def one(obj: Object) -> Object:
        async with limit:
            return await client.apply(obj)

    made = await asyncio.gather(*(one(w) for w in mine))
    async with asyncio.timeout(ESTABLISH_TIMEOUT):
        await asyncio.gather(*(_established(client, m["metadata"]["name"]) for m in made))
    return True


async def _established(client: Client, name: str) -> None:
    async with aclosing(follow(client, CRDS, name)) as states:
        async for crd in states:
            if crd is not None and is_true(at(crd, "status.conditions"), "Established"):
                return


def _stale(live: Object | None, wanted: Object) -> bool:
    """Whether a definition has to be written. They are huge, so their hash is compared instead of their content."""
    if live is None:
        return True
    have = annotations_of(live).get(DEFINITION_HASH)
    return _ours(live) and have != wanted["metadata"]["annotations"][DEFINITION_HASH]


def _ours(crd: Object) -> bool:
    return labels_of(crd).get(names.LABEL_MANAGED_BY) == names.MANAGED_BY
