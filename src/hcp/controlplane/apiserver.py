"""kube-apiserver."""

from __future__ import annotations

from hcp.api import defaults, names
from hcp.controlplane import apiserver_config as files
from hcp.controlplane import (
    audit,
    authentication,
    etcd,
    konnectivity,
    outside_proxy,
    serving_certs,
    tls_profiles,
    tuning,
)
from hcp.controlplane.meta import MANAGER, component_labels, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import (
    Pod,
    config_volume,
    container,
    empty_dir,
    http_probe,
    requests,
    rolling,
    secret_volume,
    steady_period,
    template,
)

COMPONENT = "kube-apiserver"
ROOT = "/etc/kubernetes"
AUDIT_DIR = "/var/log/kube-apiserver"
PLUGINS = "NodeRestriction,OwnerReferencesPermissionEnforcement,PodNodeSelector,PodTolerationRestriction"
# volume -> (directory, source Secret); ConfigMaps and others are added below.
SECRETS = {
    "kas-server-crt": "server",
    "kas-aggregator-crt": "aggregator",
    "kas-kubelet-client-crt": "kubelet-client",
    "etcd-client-tls": "etcd-client",
    "sa-signing-key": "sa",
    files.ENCRYPTION: "secret-encryption",
}
CONFIG_MAPS = {
    "client-ca": "client-ca",
    "kubelet-client-ca": "kubelet-ca",
    "aggregator-client-ca": "aggregator-ca",
    files.CONFIG: "config",
}
# Read again by kube-apiserver itself when it changes, so it must not roll the pod.
NOT_HASHED = frozenset({"client-ca"})


def _secrets(p: Params) -> dict[str, str]:
    more = {audit.WEBHOOK: "audit-webhook"} if p.audit_webhook else {}
    return SECRETS | more | ({serving_certs.SECRET: serving_certs.FOLDER} if p.named_certs else {})


def _config_maps(p: Params) -> dict[str, str]:
    return CONFIG_MAPS | ({authentication.CONFIG: "authentication"} if p.authentication_file else {})


def mounted(p: Params) -> tuple[tuple[str, str], ...]:
    """(kind, name) of everything whose change must roll the pod. Certificates for further names are read again."""
    found = [("Secret", s) for s in (*_secrets(p), "konnectivity-cluster") if s != serving_certs.SECRET]
    found += [("ConfigMap", c) for c in CONFIG_MAPS if c not in NOT_HASHED]
    return tuple(found)


def arguments(p: Params, root: str = ROOT, audit_dir: str = AUDIT_DIR) -> list[str]:
    """kube-apiserver's command line."""
    notes, tls = p.annotations, tls_profiles.of(p.api_config)
    args = {
        "advertise-address": p.advertise_address,
        "allow-privileged": "true",
        "anonymous-auth": "true",
        "api-audiences": p.issuer_url,
        "admission-control-config-file": f"{root}/config/admission.yaml",
        "audit-log-format": "json",
        **audit.log_arguments(p),
        "audit-log-path": f"{audit_dir}/audit.log",
        "audit-policy-file": f"{root}/config/audit-policy.yaml",
        "authorization-mode": "Node,RBAC",
        "bind-address": p.everywhere,
        "client-ca-file": f"{root}/client-ca/ca.crt",
        "egress-selector-config-file": f"{root}/config/egress-selector.yaml",
        "enable-admission-plugins": PLUGINS,
        "enable-aggregator-routing": "true",
        "enable-logs-handler": "false",
        "encryption-provider-config": f"{root}/secret-encryption/config.yaml",
        "encryption-provider-config-automatic-reload": "false",
        # The addresses of `kubernetes` are ours to write: nodes reach the API through their own proxy.
        "endpoint-reconciler-type": "none",
        "etcd-cafile": f"{root}/etcd-client/ca.crt",
        "etcd-certfile": f"{root}/etcd-client/etcd-client.crt",
        "etcd-keyfile": f"{root}/etcd-client/etcd-client.key",
        "etcd-servers": p.foreign_etcd or "https://etcd-client:2379",
        "event-ttl": "3h",
        "goaway-chance": tuning.value(
            notes, names.ANNOTATION_KAS_GOAWAY_CHANCE, "0.001" if p.highly_available else "0"
        ),
        "http2-max-streams-per-connection": "2000",
        "kubelet-certificate-authority": f"{root}/kubelet-ca/ca.crt",
        "kubelet-client-certificate": f"{root}/kubelet-client/tls.crt",
        "kubelet-client-key": f"{root}/kubelet-client/tls.key",
        "kubelet-preferred-address-types": "InternalIP",
        "kubernetes-service-node-port": "0",
        "max-mutating-requests-inflight": tuning.value(notes, names.ANNOTATION_KAS_MAX_MUTATING_INFLIGHT, "1000"),
        "max-requests-inflight": tuning.value(notes, names.ANNOTATION_KAS_MAX_INFLIGHT, "3000"),
        "min-request-timeout": "3600",
        "profiling": "false",
        "proxy-client-cert-file": f"{root}/aggregator/tls.crt",
        "proxy-client-key-file": f"{root}/aggregator/tls.key",
        "requestheader-allowed-names": "kube-apiserver-proxy,system:kube-apiserver-proxy,system:openshift-aggregator",
        "requestheader-client-ca-file": f"{root}/aggregator-ca/ca.crt",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "secure-port": str(defaults.API_PORT),
        "service-account-issuer": p.issuer_url,
        "service-account-jwks-uri": f"{p.issuer_url}/openid/v1/jwks",
        "service-account-key-file": f"{root}/sa/service-account.pub",
        "service-account-lookup": "true",
        "service-account-signing-key-file": f"{root}/sa/service-account.key",
        "service-cluster-ip-range": ",".join(p.service_networks),
        "service-node-port-range": p.node_port_range,
        "shutdown-delay-duration": "15s" if p.highly_available else "0s",
        "shutdown-send-retry-after": "true" if p.highly_available else "false",
        "storage-backend": "etcd3",
        "storage-media-type": "application/vnd.kubernetes.protobuf",
        "strict-transport-security-directives": "max-age=31536000,includeSubDomains,preload",
        "tls-cert-file": f"{root}/server/tls.crt",
        "tls-cipher-suites": ",".join(tls.ciphers),
        "tls-min-version": tls.version,
        "tls-private-key-file": f"{root}/server/tls.key",
        "v": tuning.value(notes, names.ANNOTATION_KAS_VERBOSITY, "1"),
    }
    if p.authentication_file:
        args["authentication-config"] = f"{root}/authentication/{authentication.FILE}"
    if p.audit_webhook:
        args |= {
            "audit-webhook-config-file": f"{root}/audit-webhook/{audit.WEBHOOK_KEY}",
            "audit-webhook-mode": "batch",
        }
    return [f"--{flag}={value}" for flag, value in args.items()] + serving_certs.arguments(p.named_certs, root)


def _environment(p: Params) -> dict[str, str]:
    """An idle API server holds as much garbage as live data by Go's default; less of it is what density is made of.

    Much less costs a sixth more processor time at the start (50 instead of 100), so it is in between.
    """
    env = {"GOGC": tuning.value(p.annotations, names.ANNOTATION_KAS_GOGC, "75")}
    if limit := tuning.value(p.annotations, names.ANNOTATION_KAS_GOMEMLIMIT, ""):
        env["GOMEMLIMIT"] = limit
    return env | (outside_proxy.environment(p, addresses=True) if p.own_issuer else {})


def _audit_logs(p: Params) -> Manifest:
    if audit.volume(p) is None:
        return empty_dir("audit-logs", limit="200Mi")
    return {"name": "audit-logs", "persistentVolumeClaim": {"claimName": audit.CLAIM}}


def deployment(p: Params, config_hash: str, *, beside_etcd: bool = True) -> Manifest:
    """`beside_etcd`: of several replicas each looks for a node with a member, which it then prefers."""
    size = ("200m", "512Mi") if p.highly_available else ("14m", "224Mi")
    mounts = {name: f"{ROOT}/{directory}" for name, directory in {**_secrets(p), **_config_maps(p)}.items()}
    main = container(
        COMPONENT,
        p.image(COMPONENT),
        ["kube-apiserver", *arguments(p)],
        resources=requests(p, COMPONENT, COMPONENT, *size),
        ports={"client": defaults.API_PORT},
        mounts=mounts | {"audit-logs": AUDIT_DIR, "konnectivity-uds": files.UDS_DIR, "tmp": "/tmp"},
        writable=["audit-logs", "konnectivity-uds", "tmp"],
        env=_environment(p),
        startupProbe=http_probe("/readyz", "client", failures=300, timeout=2),
        readinessProbe=http_probe("/readyz", "client", period=steady_period(p), failures=3, timeout=5),
        livenessProbe=http_probe("/livez?exclude=etcd", "client", period=30, failures=6, timeout=15),
    )
    if audit.volume(p) and p.replicas > 1:
        mount = next(m for m in main["volumeMounts"] if m["name"] == "audit-logs")
        mount["subPathExpr"] = "$(POD_NAME)"
        main["env"].append({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    containers = [main]
    volumes = [
        *(secret_volume(name, name) for name in _secrets(p)),
        *(config_volume(name, name) for name in _config_maps(p)),
        _audit_logs(p),
        empty_dir("konnectivity-uds", memory=True),
        empty_dir("tmp", memory=True, limit="16Mi"),
    ]
    if image := konnectivity_image(p):
        containers.append(konnectivity.server(p, image))
        volumes.extend(konnectivity.volumes())
    pod = Pod(
        COMPONENT,
        containers,
        volumes,
        p.annotations.get(names.ANNOTATION_API_CRITICAL_PRIORITY) or names.PRIORITY_API_CRITICAL,
        config_hash,
        grace=75 if p.highly_available else 10,
        labels={f"{names.GROUP}/request-serving-component": "true"},
        beside=etcd.COMPONENT if beside_etcd and not p.foreign_etcd else "",
    )
    labels = component_labels(p, COMPONENT)
    spec = {
        "replicas": p.replicas,
        "revisionHistoryLimit": 2,
        "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": labels},
        # A claim of one node cannot be held by the old and the new pod at the same time.
        "strategy": {"type": "Recreate"} if audit.volume(p) and p.replicas == 1 else rolling(p.replicas),
        "template": template(p, pod),
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER})


def konnectivity_image(p: Params) -> str:
    return p.annotations.get(names.ANNOTATION_KONNECTIVITY_SERVER_IMAGE) or p.images.get("konnectivity-server", "")
