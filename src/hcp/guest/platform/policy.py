"""Who may change what a hosted cluster tells about itself: nobody inside, since it follows from the HostedCluster."""

from __future__ import annotations

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.guest.objects import Manifest, obj

NAME = "hcp-hosted-settings"
# The user that the operator is inside guests.
OPERATOR = "system:hosted-cluster-config"
API_VERSION = "admissionregistration.k8s.io/v1"
MESSAGE = (
    "it follows from the HostedCluster of this cluster: whoever manages that one changes settings there, "
    "and upgrades the cluster with `hcp upgrade cluster`"
)
_SETTINGS = ("apiservers", "images", "infrastructures", "ingresses", "networks", "oauths", "operatorhubs", "proxies")
_RESOURCES = ("clusteroperators", "clusterversions", *_SETTINGS)


def objects() -> list[Manifest]:
    rule = {
        "apiGroups": ["config.openshift.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE", "DELETE"],
        "resources": [name for one in _RESOURCES for name in (one, f"{one}/status")],
    }
    ours = f'has(oldObject.metadata.labels) && oldObject.metadata.labels[?"{LABEL_MANAGED_BY}"].orValue("")'
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "by-others", "expression": f'request.userInfo.username != "{OPERATOR}"'},
            {"name": "of-ours", "expression": f'{ours} == "{MANAGED_BY}"'},
        ],
        "validations": [{"expression": "false", "message": MESSAGE, "reason": "Forbidden"}],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        obj(API_VERSION, "ValidatingAdmissionPolicy", NAME, {"spec": spec}),
        obj(API_VERSION, "ValidatingAdmissionPolicyBinding", NAME, {"spec": binding}),
    ]
