"""The operator's Deployment and Service."""

from __future__ import annotations

from typing import Any

from hcp.api import manifests, names
from hcp.api.manifests import Object, container_security, http_probe, pod_security
from hcp.install.options import Options
from hcp.install.rights import ACCOUNT

NAME = "operator"
METRICS_PORT = 9000
LABELS = {"name": NAME, "app": NAME, names.LABEL_COMPONENT: "operator"}
TRUST = "/etc/hcp/trust"
INTERNAL_REGISTRIES = "--internal-registries"
INSECURE_REGISTRIES = "--insecure-registries"
HOSTED_QUOTA = "--hosted-quota"
REGISTRY_OVERRIDES = "--registry-overrides"
SHARDS = "--shards"
LISTS = (INTERNAL_REGISTRIES, INSECURE_REGISTRIES, REGISTRY_OVERRIDES, HOSTED_QUOTA, SHARDS)


def _field(path: str) -> Object:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def _environment(options: Options) -> list[Object]:
    found: list[Object] = [
        {"name": "MY_NAMESPACE", "valueFrom": _field("metadata.namespace")},
        {"name": "MY_NAME", "valueFrom": _field("metadata.name")},
        {"name": "HCP_IMAGE", "value": options.image},
    ]
    if options.trust_bundle:
        # Beside the CAs of the image, not instead of them.
        found.append({"name": "SSL_CERT_FILE", "value": f"{TRUST}/{names.CA_BUNDLE_KEY}"})
    taken = {one["name"] for one in found}
    for name, value in options.environment.items():
        key, text = name.strip(), value.strip()
        if key and text and key not in taken:
            found.append({"name": key, "value": text})
    return found


def _flags(options: Options) -> list[str]:
    """What the operator is told only when the administrator said it."""
    quota = [f"{word}={value}" for word, value in sorted(options.hosted_quota.items())]
    lists = {
        HOSTED_QUOTA: quota,
        INTERNAL_REGISTRIES: options.internal_registries,
        INSECURE_REGISTRIES: options.insecure_registries,
        REGISTRY_OVERRIDES: options.registry_overrides,
        SHARDS: [str(options.shards)] if options.shards != 1 else [],
    }
    return [f"{flag}={','.join(found)}" for flag, found in lists.items() if found]


def deployment(options: Options) -> Object:
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    if options.trust_bundle:
        mounts.append({"name": "trust", "mountPath": TRUST, "readOnly": True})
        volumes.append({"name": "trust", "configMap": {"name": names.USER_CA_BUNDLE}})
    container: dict[str, Any] = {
        "name": NAME,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "args": [
            "operator",
            "run",
            f"--namespace={options.namespace}",
            f"--metrics-port={METRICS_PORT}",
            *_flags(options),
            *([f"--named-route-port={options.named_route_port}"] if options.named_route_port else []),
        ],
        "env": _environment(options),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        "readinessProbe": http_probe("/readyz", "metrics", periodSeconds=2, timeoutSeconds=5),
        "livenessProbe": http_probe("/healthz", "metrics", periodSeconds=20, failureThreshold=6, timeoutSeconds=10),
        # When many clusters start at once their pods want every core; whoever makes the rest of them must get its turn.
        # Far above what dozens of clusters need: whatever goes wrong here shall not take the node's memory.
        "resources": {"requests": {"cpu": "200m", "memory": "150Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": mounts,
    }
    pod = {
        "serviceAccountName": ACCOUNT,
        "priorityClassName": names.PRIORITY_OPERATOR,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 15,
        "containers": [container],
        "volumes": volumes,
    }
    made = manifests.deployment(
        NAME,
        options.namespace,
        pod,
        labels=LABELS,
        selector={"name": NAME},
        replicas=options.replicas,
        metrics=METRICS_PORT,
    )
    made["metadata"]["annotations"] = {names.ANNOTATION_INSTALL_VERSION: options.version}
    return made


def service(options: Options) -> Object:
    return manifests.service(NAME, options.namespace, {"metrics": 9393}, labels=LABELS, selector={"name": NAME})


def monitor(options: Options) -> Object:
    """Lets a Prometheus operator read the metrics."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": NAME, "namespace": options.namespace},
        "spec": {
            "jobLabel": "component",
            "selector": {"matchLabels": {"name": NAME}},
            "endpoints": [{"port": "metrics", "interval": "30s"}],
        },
    }
