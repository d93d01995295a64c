"""Who may reach the pods of the operator's namespace: it can read every secret, so nobody by default."""

from __future__ import annotations

from hcp.api.manifests import Object
from hcp.install import ignition, operator
from hcp.install.options import Options

# OpenShift's name for the namespaces of its Prometheus; plain clusters put it on theirs to be let in.
MONITORING = {"network.openshift.io/policy-group": "monitoring"}


def _policy(options: Options, name: str, pods: Object, ingress: list[Object]) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": options.namespace},
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def objects(options: Options) -> list[Object]:
    def port(number: int) -> Object:
        return {"protocol": "TCP", "port": number}

    monitors = [{"namespaceSelector": {"matchLabels": dict(MONITORING)}}]
    return [
        _policy(options, "default-deny", {}, []),
        # Booting machines come through the router, or directly.
        _policy(
            options,
            ignition.NAME,
            {"matchLabels": {"app": ignition.NAME}},
            [{"ports": [port(ignition.PORT)]}, {"from": monitors, "ports": [port(ignition.METRICS_PORT)]}],
        ),
        _policy(
            options,
            "operator-metrics",
            {"matchLabels": {"name": operator.NAME}},
            [{"from": monitors, "ports": [port(operator.METRICS_PORT)]}],
        ),
    ]
