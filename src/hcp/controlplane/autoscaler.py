"""cluster-autoscaler: moves the size of node pools between their bounds, by what waits inside the guest.

One replica that is replaced, not rolled: two would count the same pods. Nobody elects a leader and no status is
written, so an idle one writes nothing. It sees Cluster API in its own namespace alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.controlplane.autoscaler_flags import flags
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.controllers import ROOT
from hcp.controlplane.kubeconfigs import internal_url
from hcp.controlplane.meta import MANAGER, component_labels, obj, secret, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import Pod, container, go_environment, http_probe, requests, secret_volume, template
from hcp.pki import Leaf, kubeconfig, kubeconfig_yaml

COMPONENT = names.AUTOSCALER
ACCOUNT = names.AUTOSCALER
KUBECONFIG = "cluster-autoscaler-kubeconfig"
# Who it is in the guest; its rights there are in guest/autoscaling.py.
GUEST_USER = "system:cluster-autoscaler"
LEAF = LeafSecret("cluster-autoscaler-client", "kube-control-plane-signer", Leaf(GUEST_USER, (), usage="client"))
PORT = 8085
# What our machines are written as; later versions of Cluster API name templates in another way.
_CAPI_VERSION = "v1beta1"


def image(p: Params) -> str:
    """The one an administrator named, else the release's; empty where the release has none."""
    return p.annotations.get(names.ANNOTATION_AUTOSCALER_IMAGE) or p.images.get(COMPONENT, "")


def guest_kubeconfig(p: Params, leaf: Mapping[str, Any], root_ca: bytes) -> Manifest:
    data = secret_data(leaf)
    made = kubeconfig_yaml(kubeconfig(internal_url(p), root_ca, data["tls.crt"], data["tls.key"]))
    return secret(p, KUBECONFIG, {names.KUBECONFIG_KEY: made})


def account(p: Params) -> list[Manifest]:
    """Whom the management cluster knows it as; its rights end at the namespace."""
    group = "rbac.authorization.k8s.io"
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": names.hosted_role(ACCOUNT)},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": p.namespace}],
    }
    return [
        obj(p, "v1", "ServiceAccount", ACCOUNT, {"automountServiceAccountToken": False}),
        obj(p, f"{group}/v1", "RoleBinding", ACCOUNT, bound),
    ]


def arguments(p: Params, autoscaling: Mapping[str, Any]) -> list[str]:
    return [
        "--cloud-provider=clusterapi",
        # The management cluster is the one the pod runs in; the kubeconfig is the guest's only.
        "--clusterapi-cloud-config-authoritative",
        f"--kubeconfig={ROOT}/guest/{names.KUBECONFIG_KEY}",
        f"--node-group-auto-discovery=clusterapi:namespace={p.namespace}",
        f"--address=:{PORT}",
        "--leader-elect=false",
        "--write-status-configmap=false",
        "--balance-similar-node-groups=true",
        # Parts of ours, and pods with scratch space, move to another node if there is room; else their node stays.
        "--skip-nodes-with-system-pods=false",
        "--skip-nodes-with-local-storage=false",
        "--v=1",
        *flags(autoscaling),
    ]


def deployment(p: Params, autoscaling: Mapping[str, Any], config_hash: str) -> Manifest:
    main = container(
        COMPONENT,
        image(p),
        [COMPONENT, *arguments(p, autoscaling)],
        resources=requests(p, COMPONENT, COMPONENT, "10m", "60Mi"),
        ports={"http": PORT},
        mounts={"guest": f"{ROOT}/guest"},
        env={**go_environment(p), "CAPI_VERSION": _CAPI_VERSION},
        startupProbe=http_probe("/health-check", "http", scheme="HTTP", failures=300),
        readinessProbe=http_probe("/health-check", "http", scheme="HTTP", period=10, timeout=5),
        livenessProbe=http_probe("/health-check", "http", scheme="HTTP", period=60, timeout=15, failures=5),
    )
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, COMPONENT)
    reach = {names.LABEL_NEED_MANAGEMENT_API: "true"}
    pod = template(p, Pod(COMPONENT, [main], [secret_volume("guest", KUBECONFIG)], priority, config_hash, labels=reach))
    pod["spec"] |= {"serviceAccountName": ACCOUNT, "automountServiceAccountToken": True}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "Recreate"},
        "template": pod,
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER})
