"""operator-lifecycle-manager inside the guest: its kinds, its pods and the default catalogs.

Namespaces are those of OpenShift, which guides name. OLM makes every object that an operator brings, rights included,
so it may do everything in the guest; it has nothing outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.guest.catalogs import Catalog, GuestCatalogs
from hcp.guest.objects import GuestParams, Manifest, cluster_role, cluster_role_binding, obj

NAMESPACE, MARKETPLACE, OPERATORS = (
    "openshift-operator-lifecycle-manager",
    "openshift-marketplace",
    "openshift-operators",
)
# Its programs: the first two are ours to apply, the third it installs itself.
PROGRAMS = ("catalog-operator", "olm-operator", "packageserver")
ACCOUNT = "olm-operator-serviceaccount"
ROLE = "system:controller:operator-lifecycle-manager"
PACKAGES = "packageserver"
PACKAGES_PORT = 5443
METRICS_PORT = 8080
GROUP = "operators.coreos.com"
# How often a catalog that is named by a tag is looked for anew; one that is named by digest never changes.
POLL = "10m"
_ALL = ["watch", "list", "get", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind"]
_READ = ["get", "list", "watch"]


def objects(g: GuestParams) -> list[Manifest]:
    """Nothing where the release has no OLM; only the kinds, and where catalogs go, until there is a catalog."""
    return [] if g.catalogs is None else parts(g.catalogs, g.trust_mark)


def parts(found: GuestCatalogs, marks: Mapping[str, str]) -> list[Manifest]:
    """`marks`: annotations of pods. They are the same on any cluster."""
    marketplace = obj("v1", "Namespace", MARKETPLACE, {}, labels={"pod-security.kubernetes.io/enforce": "restricted"})
    made = [*found.definitions, marketplace]
    if found.running:
        made += [*_places(), *cluster_rights(), *_deployments(found, marks), *_groups(), _package_server(found)]
    return [*made, *(catalog_source(one) for one in found.catalogs)]


def catalog_source(one: Catalog) -> Manifest:
    spec: Manifest = {
        "sourceType": "grpc",
        **({"address": one.address} if one.address else {"image": one.image}),
        "displayName": one.default.title,
        "publisher": one.default.publisher,
        "priority": one.default.priority,
    }
    if not one.address and "@" not in one.image:
        spec["updateStrategy"] = {"registryPoll": {"interval": POLL}}
    return obj(f"{GROUP}/v1alpha1", "CatalogSource", one.default.name, {"spec": spec}, MARKETPLACE)


def _places() -> list[Manifest]:
    return [
        obj("v1", "Namespace", NAMESPACE, {}),
        obj("v1", "Namespace", OPERATORS, {}),
        obj("v1", "ServiceAccount", ACCOUNT, {}, NAMESPACE),
    ]


def cluster_rights() -> list[Manifest]:
    """What it may do, and what this gives to those who may edit or view."""
    rules: list[Manifest] = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": _ALL},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    group, packages = f"{GROUP}", f"packages.{GROUP}"
    kinds = ["clusterserviceversions", "catalogsources", "installplans", "subscriptions"]
    edit: list[Manifest] = [
        {"apiGroups": [group], "resources": ["subscriptions"], "verbs": ["create", "update", "patch", "delete"]},
        {"apiGroups": [group], "resources": kinds, "verbs": ["delete"]},
    ]
    view: list[Manifest] = [
        {"apiGroups": [group], "resources": [*kinds, "operatorgroups"], "verbs": _READ},
        {"apiGroups": [packages], "resources": ["packagemanifests", "packagemanifests/icon"], "verbs": _READ},
    ]
    return [
        cluster_role(ROLE, rules),
        cluster_role_binding(f"olm-operator-binding-{NAMESPACE}", ROLE, subject),
        _aggregated("aggregate-olm-edit", edit, "admin", "edit"),
        _aggregated("aggregate-olm-view", view, "admin", "edit", "view"),
    ]


def _aggregated(name: str, rules: list[Manifest], *roles: str) -> Manifest:
    """Rights that everybody has who has one of these roles."""
    made = cluster_role(name, rules)
    made["metadata"]["labels"] |= {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in roles}
    return made


def _deployments(found: GuestCatalogs, marks: Mapping[str, str]) -> list[Manifest]:
    place = {"name": "OPERATOR_NAMESPACE", "value": NAMESPACE}
    catalog_words = [
        "/bin/catalog",
        f"--namespace={MARKETPLACE}",
        f"--configmapServerImage={found.opm_image}",
        f"--opmImage={found.opm_image}",
        f"--util-image={found.olm_image}",
        "--set-workload-user-id=true",
    ]
    olm = {
        "command": ["/bin/olm", f"--namespace={NAMESPACE}"],
        "env": [place, {"name": "OPERATOR_NAME", "value": "olm-operator"}],
    }
    return [
        _deployment(found, "olm-operator", olm, marks),
        _deployment(found, "catalog-operator", {"command": catalog_words}, marks),
    ]


def _deployment(found: GuestCatalogs, name: str, words: Mapping[str, Any], marks: Mapping[str, str]) -> Manifest:
    probe = {"httpGet": {"path": "/healthz", "port": METRICS_PORT}}
    labels = {"app": name}
    container = _container(name, found.olm_image, 80) | {
        **words,
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "readinessProbe": probe,
        "livenessProbe": probe | {"periodSeconds": 30, "failureThreshold": 5},
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        # Never two at a time: nobody elects a leader.
        "strategy": {"type": "Recreate"},
        "template": {"metadata": {"labels": labels, "annotations": dict(marks)}, "spec": _pod(container)},
    }
    return obj("apps/v1", "Deployment", name, {"spec": spec}, NAMESPACE, labels)


def _container(name: str, image: str, memory: int) -> Manifest:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "10m", "memory": f"{memory}Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _pod(container: Manifest) -> Manifest:
    return {
        "serviceAccountName": ACCOUNT,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _groups() -> list[Manifest]:
    """Operators in `openshift-operators` see all namespaces, as guides expect; OLM's own sees its own."""
    kind = (f"{GROUP}/v1", "OperatorGroup")
    return [
        obj(*kind, "global-operators", {"spec": {}}, OPERATORS),
        obj(*kind, "olm-operators", {"spec": {"targetNamespaces": [NAMESPACE]}}, NAMESPACE),
    ]


def _package_server(found: GuestCatalogs) -> Manifest:
    """PackageManifests: what catalogs offer. OLM itself installs it, with its certificates, as it does operators."""
    probe = {"httpGet": {"scheme": "HTTPS", "path": "/healthz", "port": PACKAGES_PORT}}
    container = _container(PACKAGES, found.olm_image, 50) | {
        "command": [
            "/bin/package-server",
            "-v=2",
            "--secure-port",
            str(PACKAGES_PORT),
            "--global-namespace",
            MARKETPLACE,
        ],
        "ports": [{"containerPort": PACKAGES_PORT, "protocol": "TCP"}],
        "readinessProbe": probe,
        "livenessProbe": probe,
    }
    labels = {"app": PACKAGES}
    deployment = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
        "template": {"metadata": {"labels": labels}, "spec": _pod(container)},
    }
    offered = {
        "group": f"packages.{GROUP}",
        "version": "v1",
        "kind": "PackageManifest",
        "name": "packagemanifests",
        "displayName": "PackageManifest",
        "description": "A package that a catalog offers",
        "deploymentName": PACKAGES,
        "containerPort": PACKAGES_PORT,
    }
    rules = [
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": _READ},
        {"apiGroups": [GROUP], "resources": ["catalogsources"], "verbs": _READ},
        {"apiGroups": [f"packages.{GROUP}"], "resources": ["packagemanifests"], "verbs": ["get", "list"]},
    ]
    modes = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
    spec = {
        "displayName": "Package Server",
        "description": "Offers what catalogs have as PackageManifests",
        "minKubeVersion": "1.11.0",
        "provider": {"name": "hcp"},
        "version": "1.0.0",
        "installModes": [{"type": mode, "supported": True} for mode in modes],
        "install": {
            "strategy": "deployment",
            "spec": {
                "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": rules}],
                "deployments": [{"name": PACKAGES, "spec": deployment}],
            },
        },
        "apiservicedefinitions": {"owned": [offered]},
    }
    return obj(f"{GROUP}/v1alpha1", "ClusterServiceVersion", PACKAGES, {"spec": spec}, NAMESPACE)
