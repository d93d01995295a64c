"""The node-side way to the hosted API: the advertise address on ``lo`` and a small HAProxy behind it.

Pods reach ``kubernetes.default`` through the advertise address; each node answers it itself and forwards to the
published API, so that nothing in the guest needs to know how the API is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from hcp.api.addresses import in_url
from hcp.api.names import LABEL_CONTROL_PLANE_COMPONENT
from hcp.ignition.document import Document, document, file, unit

CONFIG_DIR = "/etc/kubernetes/apiserver-proxy-config"
MANIFEST = "/etc/kubernetes/manifests/kube-apiserver-proxy.yaml"
NAME = "20-apiserver-haproxy"


@dataclass(frozen=True)
class ApiProxy:
    """Where nodes listen for the API and where they forward it."""

    advertise_address: str
    advertise_port: int
    api_host: str
    api_port: int
    image: str
    # The host that a router is told in front of each connection, because the TLS of pods names `kubernetes.default`.
    named: str = ""


def haproxy_config(proxy: ApiProxy) -> str:
    """HAProxy's own configuration; a name that does not resolve yet is asked for again instead of failing the start."""
    return f"""\
global
  maxconn 7000
  log stdout local0
  log stdout local1 notice

defaults
  mode tcp
  timeout connect 10s
  timeout client 10m
  timeout server 10m
  log global

resolvers node
  parse-resolv-conf
  hold valid 10s

frontend local_apiserver
  bind {in_url(proxy.advertise_address)}:{proxy.advertise_port}
  log global
  option tcplog
{_naming(proxy)}\
  default_backend remote_apiserver

backend remote_apiserver
  mode tcp
  log global
  option tcp-check
  server controlplane {in_url(proxy.api_host)}:{proxy.api_port} check inter 10s fall 3 rise 3 \
resolvers node init-addr libc,none{" send-proxy-v2 proxy-v2-options unique-id" if proxy.named else ""}
"""


def _naming(proxy: ApiProxy) -> str:
    return f"  unique-id-format {proxy.named}\n" if proxy.named else ""


def static_pod(proxy: ApiProxy) -> dict[str, Any]:
    """The static pod that runs HAProxy on the node's own network."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-apiserver-proxy",
            "namespace": "kube-system",
            "labels": {"k8s-app": "kube-apiserver-proxy", LABEL_CONTROL_PLANE_COMPONENT: "proxy"},
        },
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "priorityClassName": "system-node-critical",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsUser": 1001, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "haproxy",
                    "image": proxy.image,
                    "command": ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"],
                    "resources": {"requests": {"cpu": "13m", "memory": "16Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "livenessProbe": {
                        "httpGet": {
                            "scheme": "HTTPS",
                            "host": proxy.advertise_address,
                            "port": proxy.advertise_port,
                            "path": "/version",
                        },
                        "initialDelaySeconds": 120,
                        "periodSeconds": 120,
                        "timeoutSeconds": 160,
                        "failureThreshold": 3,
                    },
                    "ports": [
                        {
                            "name": "apiserver",
                            "hostIP": proxy.advertise_address,
                            "hostPort": proxy.advertise_port,
                            "containerPort": proxy.advertise_port,
                            "protocol": "TCP",
                        }
                    ],
                    "volumeMounts": [{"name": "config", "mountPath": "/usr/local/etc/haproxy", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "config", "hostPath": {"path": CONFIG_DIR}}],
        },
    }


def api_proxy_document(proxy: ApiProxy) -> Document:
    """Files and the address unit of the node-side proxy."""
    family = "-6 " if ":" in proxy.advertise_address else ""
    length = 128 if family else 32
    address_unit = f"""\
[Unit]
Description=The hosted API's advertise address on this node
After=network.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip {family}address replace {proxy.advertise_address}/{length} dev lo
ExecStop=ip {family}address del {proxy.advertise_address}/{length} dev lo

[Install]
WantedBy=multi-user.target
"""
    return document(
        files=[
            file(f"{CONFIG_DIR}/haproxy.cfg", haproxy_config(proxy)),
            file(MANIFEST, yaml.safe_dump(static_pod(proxy), sort_keys=False), 0o600),
        ],
        units=[unit("apiserver-ip.service", address_unit)],
    )
