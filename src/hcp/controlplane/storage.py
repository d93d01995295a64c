"""kubevirt-csi-controller: the storage driver of one hosted cluster with the sidecars that ask it.

One replica that is replaced, not rolled: two would ask the infra cluster for the same volumes. Nobody elects a leader,
so an idle one writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.controllers import ROOT
from hcp.controlplane.kubeconfigs import internal_url
from hcp.controlplane.meta import MANAGER, component_labels, config_map, obj, secret, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import (
    Pod,
    config_volume,
    container,
    empty_dir,
    go_environment,
    http_probe,
    requests,
    secret_volume,
    template,
)
from hcp.controlplane.storage_plan import PROVISIONER, RESIZER, SNAPSHOTTER, Plan
from hcp.pki import Leaf, kubeconfig, kubeconfig_yaml

COMPONENT = names.CSI_CONTROLLER
ACCOUNT = names.CSI_ACCOUNT
CONFIG = "kubevirt-csi-config"
SETTINGS_KEY = "settings.json"
KUBECONFIG = "kubevirt-csi-kubeconfig"
# Who it is in the guest; its rights there are in guest/storage.py.
GUEST_USER = "system:kubevirt-csi-controller"
LEAF = LeafSecret("kubevirt-csi-client", "kube-control-plane-signer", Leaf(GUEST_USER, (), usage="client"))
HEALTH_PORT = 10301
SOCKET_DIR = "/csi"
SOCKET = f"{SOCKET_DIR}/csi.sock"


def settings(p: Params, plan: Plan) -> Manifest:
    return config_map(p, CONFIG, {SETTINGS_KEY: plan.settings.text()})


def guest_kubeconfig(p: Params, leaf: Mapping[str, Any], root_ca: bytes) -> Manifest:
    data = secret_data(leaf)
    made = kubeconfig_yaml(kubeconfig(internal_url(p), root_ca, data["tls.crt"], data["tls.key"]))
    return secret(p, KUBECONFIG, {names.KUBECONFIG_KEY: made})


def account(p: Params) -> list[Manifest]:
    """Whom the infra cluster knows it as, where that is the management cluster; its rights end at the namespace."""
    group = "rbac.authorization.k8s.io"
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": names.hosted_role(ACCOUNT)},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": p.namespace}],
    }
    return [
        obj(p, "v1", "ServiceAccount", ACCOUNT, {"automountServiceAccountToken": False}),
        obj(p, f"{group}/v1", "RoleBinding", ACCOUNT, bound),
    ]


def deployment(p: Params, plan: Plan, driver_image: str, config_hash: str, *, external: bool) -> Manifest:
    volumes = [
        empty_dir("socket", memory=True, limit="1Mi"),
        # Certificates of the kubeconfigs pass through files.
        empty_dir("tmp", memory=True, limit="1Mi"),
        config_volume("settings", CONFIG),
        secret_volume("guest", KUBECONFIG),
    ]
    if external:
        volumes.append(secret_volume("infra", names.INFRA_CREDENTIALS, keys={names.KUBECONFIG_KEY: "kubeconfig"}))
    parts = [_driver(p, driver_image, external=external)]
    parts.append(_sidecar(p, "csi-provisioner", PROVISIONER, "--default-fstype=ext4", "--retry-interval-max=1m"))
    parts.append(_sidecar(p, "csi-resizer", RESIZER, "--handle-volume-inuse-error=false", "--retry-interval-max=1m"))
    if plan.snapshot_classes:
        parts.append(_sidecar(p, "csi-snapshotter", SNAPSHOTTER, "--retry-interval-max=1m"))
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, COMPONENT)
    # On the management cluster's own API, and only where it is the infra cluster.
    reach = {} if external else {names.LABEL_NEED_MANAGEMENT_API: "true"}
    pod = template(p, Pod(COMPONENT, parts, volumes, priority, config_hash, labels=reach))
    if not external:
        pod["spec"] |= {"serviceAccountName": ACCOUNT, "automountServiceAccountToken": True}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "Recreate"},
        "template": pod,
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER})


def _driver(p: Params, image: str, *, external: bool) -> Manifest:
    mounts = {"socket": SOCKET_DIR, "tmp": "/tmp", "settings": f"{ROOT}/settings", "guest": f"{ROOT}/guest"}
    words = [
        f"--socket={SOCKET}",
        f"--settings={ROOT}/settings/{SETTINGS_KEY}",
        f"--guest-kubeconfig={ROOT}/guest/{names.KUBECONFIG_KEY}",
        f"--health-port={HEALTH_PORT}",
    ]
    if external:
        mounts["infra"] = f"{ROOT}/infra"
        words.append(f"--infra-kubeconfig={ROOT}/infra/{names.KUBECONFIG_KEY}")
    return container(
        "csi-driver",
        image,
        ["python3", "-m", "hcp.csi.kubevirt", "controller", *words],
        resources=requests(p, COMPONENT, "csi-driver", "5m", "60Mi"),
        ports={"healthz": HEALTH_PORT},
        mounts=mounts,
        writable=("socket", "tmp"),
        startupProbe=http_probe("/readyz", "healthz", scheme="HTTP", failures=300),
        readinessProbe=http_probe("/readyz", "healthz", scheme="HTTP", period=10, timeout=5),
        livenessProbe=http_probe("/healthz", "healthz", scheme="HTTP", period=60, timeout=15, failures=5),
    )


def _sidecar(p: Params, name: str, component: str, *more: str) -> Manifest:
    return container(
        name,
        p.image(component),
        [
            name,
            f"--csi-address={SOCKET}",
            f"--kubeconfig={ROOT}/guest/{names.KUBECONFIG_KEY}",
            "--timeout=3m",
            "--v=1",
            *more,
        ],
        resources=requests(p, COMPONENT, name, "2m", "32Mi"),
        mounts={"socket": SOCKET_DIR, "guest": f"{ROOT}/guest"},
        writable=("socket",),
        # Half of what they would take otherwise, and they have all the time of the world.
        env=go_environment(p) | {"GOMEMLIMIT": "40MiB"},
    )
