"""`configuration.ingress`, `network`, `proxy`: how traffic enters, moves and leaves the guest."""

from __future__ import annotations

from hcp.api.configuration.references import named
from hcp.api.schema import MAX_NAME, Schema, array, immutable, integer, mapping, obj, rule, string

_PORT = r"([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_PLATFORMS = (
    *("", "AWS", "Azure", "BareMetal", "GCP", "Libvirt", "OpenStack", "None", "VSphere", "oVirt", "IBMCloud"),
    *("KubeVirt", "EquinixMetal", "PowerVS", "AlibabaCloud", "Nutanix", "External"),
)


def proxy() -> Schema:
    fields = {
        "httpProxy": string("Proxy for http.", max_len=2048),
        "httpsProxy": string("Proxy for https.", max_len=2048),
        "noProxy": string("Hosts and ranges reached directly.", max_len=65536),
        "readinessEndpoints": array(string(max_len=2048), "Addresses that show whether it works.", max_items=32),
        "trustedCA": named("ConfigMap with CAs of the proxy."),
    }
    return obj(fields, "Proxy of the guest; a change rolls nodes.")


def ingress() -> Schema:
    component = obj(
        {
            "namespace": string(
                "Namespace of the part.", min_len=1, max_len=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
            ),
            "name": string("Name of the Route.", min_len=1, max_len=256),
            "hostname": string("Its host.", max_len=MAX_NAME, pattern=rf"^{_LABEL}(\.{_LABEL})*$"),
            "servingCertKeyPairSecret": named("Secret with the certificate."),
        },
        required=("namespace", "name", "hostname"),
    )
    balancer = obj(
        {
            "platform": obj(
                {
                    "type": string("Platform.", enum=_PLATFORMS),
                    "aws": obj({"type": string("Kind.", enum=("NLB", "Classic"))}, "AWS.", required=("type",)),
                },
                "Settings of a platform.",
            )
        },
        "Load balancer of the ingress.",
    )
    fields = {
        "domain": string("Domain of the default ingress.", max_len=MAX_NAME, rules=[immutable("ingress.domain")]),
        "appsDomain": string("Domain of new Routes instead of the default one.", max_len=MAX_NAME),
        "componentRoutes": array(
            component, "Hosts of the platform's Routes.", max_items=250, keys=("namespace", "name")
        ),
        "loadBalancer": balancer,
        "requiredHSTSPolicies": array(_hsts(), "What Routes must say about HTTPS.", max_items=64),
    }
    return obj(fields, "Default ingress.")


def _hsts() -> Schema:
    age = integer("Seconds.", minimum=0, maximum=2147483647)
    expression = obj(
        {
            "key": string("Label key.", max_len=317),
            "operator": string("How it is compared.", max_len=64),
            "values": array(string(max_len=MAX_NAME), "Label values.", max_items=64),
        },
        required=("key", "operator"),
    )
    selector = obj(
        {
            "matchLabels": mapping(string(max_len=MAX_NAME), "Labels they have.", max_props=64),
            "matchExpressions": array(expression, "Expressions over labels.", max_items=64),
        },
        "Namespaces it is for.",
        atomic=True,
    )
    fields = {
        "namespaceSelector": selector,
        "domainPatterns": array(string(max_len=MAX_NAME), "Hosts it is for.", min_items=1, max_items=64),
        "maxAge": obj({"largestMaxAge": age, "smallestMaxAge": age}, "Bounds."),
        "preloadPolicy": string("Preloading.", enum=("RequirePreload", "RequireNoPreload", "NoOpinion")),
        "includeSubDomainsPolicy": string(
            "Subdomains.", enum=("RequireIncludeSubDomains", "RequireNoIncludeSubDomains", "NoOpinion")
        ),
    }
    return obj(fields, required=("domainPatterns",))


def network() -> Schema:
    toleration = {
        name: string(f"The {name} of a taint.", max_len=317) for name in ("key", "operator", "value", "effect")
    }
    toleration["tolerationSeconds"] = integer("How long it is tolerated.", maximum=2**53, fmt="int64")
    placement = obj(
        {
            "nodeSelector": mapping(string(max_len=MAX_NAME), "Nodes.", max_props=64),
            "tolerations": array(obj(toleration), "Taints tolerated.", max_items=64),
        },
        "Where its pods run.",
    )
    ranges = array(string(max_len=64), "Ranges in CIDR notation.", max_items=64)
    part = obj(
        {"cidr": string("A range.", max_len=64), "hostPrefix": integer("Part of a node.", minimum=0, maximum=128)}
    )
    fields = {
        "clusterNetwork": array(part, "Reported by the guest; spec.networking decides.", max_items=2),
        "serviceNetwork": array(string(max_len=64), "Reported by the guest; spec.networking decides.", max_items=2),
        "networkType": string("Reported by the guest; spec.networking decides.", max_len=64),
        "externalIP": obj(
            {
                "policy": obj({"allowedCIDRs": ranges, "rejectedCIDRs": ranges}, "Which addresses Services may have."),
                "autoAssignCIDRs": ranges,
            },
            "External addresses of Services.",
        ),
        "serviceNodePortRange": string(
            "Ports of Services of type NodePort, as first-last.", max_len=11, pattern=f"^{_PORT}-{_PORT}$"
        ),
        "networkDiagnostics": obj(
            {
                "mode": string("Whether connections are watched.", enum=("", "All", "Disabled")),
                "sourcePlacement": placement,
                "targetPlacement": placement,
            },
            "Watching of connections.",
        ),
    }
    diagnostics = "self.networkDiagnostics"
    disabled = rule(
        f"!has({diagnostics}) || !has({diagnostics}.mode) || {diagnostics}.mode != 'Disabled' || "
        f"(!has({diagnostics}.sourcePlacement) && !has({diagnostics}.targetPlacement))",
        "placements cannot be set when networkDiagnostics is Disabled",
    )
    return obj(fields, "Settings of the network.", rules=[disabled])
