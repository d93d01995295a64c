"""Namespace, priority classes, and the ConfigMaps that other tools read."""

from __future__ import annotations

import base64
import json

from hcp.api import names
from hcp.api.manifests import Object, config_map
from hcp.install.options import Options

PULL_SECRET = "pull-secret"
PRIORITIES = (
    (names.PRIORITY_CONTROL_PLANE, 100000000, "Control planes of hosted clusters"),
    (names.PRIORITY_ETCD, 100002000, "etcd of hosted clusters"),
    (names.PRIORITY_API_CRITICAL, 100001000, "What hosted clusters need to answer at all"),
    (names.PRIORITY_OPERATOR, 100003000, "The operator of hosted clusters"),
)


def priority_classes() -> list[Object]:
    """Hosted control planes come before ordinary pods but push none of them away; the operator may."""
    found = []
    for name, value, description in PRIORITIES:
        policy = "PreemptLowerPriority" if name == names.PRIORITY_OPERATOR else "Never"
        found.append(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": policy,
                "globalDefault": False,
                "description": description,
            }
        )
    return found


def namespace(options: Options) -> Object:
    labels = {names.LABEL_COMPONENT: "operator", names.LABEL_MONITORING: "true"}
    if options.monitoring != "None":
        labels["openshift.io/cluster-monitoring"] = "true"
    labels |= {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace, "labels": labels}}


def supported_versions(options: Options) -> Object:
    """What this operator supports, and the release a cluster gets that names none.

    Which version the operator is, it writes here itself: only it knows what its image holds.
    """
    data = {
        names.SUPPORTED_VERSIONS_KEY: json.dumps({"versions": list(options.supported_versions)}),
    }
    if options.default_release:
        data[names.DEFAULT_RELEASE_KEY] = options.default_release
    labels = {names.LABEL_SUPPORTED_VERSIONS: "true"}
    return config_map(names.SUPPORTED_VERSIONS, options.namespace, data, labels)


def given_files(options: Options) -> list[Object]:
    """The pull secret and the CA bundle that the user handed over."""
    found: list[Object] = []
    if options.pull_secret is not None:
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": PULL_SECRET, "namespace": options.namespace},
                "type": "kubernetes.io/dockerconfigjson",
                "data": {names.PULL_SECRET_KEY: base64.b64encode(options.pull_secret).decode()},
            }
        )
    if options.trust_bundle:
        found.append(config_map(names.USER_CA_BUNDLE, options.namespace, {names.CA_BUNDLE_KEY: options.trust_bundle}))
    return found


def pull_secrets(options: Options) -> list[str]:
    return [PULL_SECRET] if options.pull_secret is not None else []
