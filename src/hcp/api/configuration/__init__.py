"""Cluster-wide settings of the guest, one block for each configuration kind of OpenShift.

Fields and bounds follow OpenShift's, so that a misspelled field is refused instead of being kept without effect.
"""

from __future__ import annotations

from hcp.api.configuration import apiserver, authentication, oauth, traffic
from hcp.api.configuration.images import image
from hcp.api.configuration.references import named
from hcp.api.schema import MAX_NAME, Schema, array, boolean, obj, rule, string

_FEATURE_SETS = ("CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "OKD", "")


def configuration() -> Schema:
    fields = {
        "apiServer": apiserver.api_server(),
        "authentication": authentication.authentication(),
        "featureGate": _feature_gate(),
        "image": image(),
        "ingress": traffic.ingress(),
        "network": traffic.network(),
        "oauth": oauth.oauth(),
        "operatorhub": _operator_hub(),
        "scheduler": _scheduler(),
        "proxy": traffic.proxy(),
    }
    return obj(fields, "Cluster-wide settings of the guest.")


def _feature_gate() -> Schema:
    gate = string(max_len=MAX_NAME, pattern=r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$")
    gates = {
        "enabled": array(gate, "Features that are on.", max_items=256),
        "disabled": array(gate, "Features that are off.", max_items=256),
    }
    custom = obj(gates, "Single features, with CustomNoUpgrade.")
    lasting = [
        rule(f"oldSelf != '{name}' || self == '{name}'", f"{name} cannot be changed once set")
        for name in ("CustomNoUpgrade", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
    ]
    fields = {
        "featureSet": string(
            "A named set of features.",
            enum=_FEATURE_SETS,
            rules=[*lasting, rule("oldSelf != 'OKD' || self != ''", "OKD cannot be removed once set")],
        ),
        "customNoUpgrade": {**custom, "nullable": True},
    }
    return obj(fields, "Features.")


def _operator_hub() -> Schema:
    source = obj(
        {
            "name": string("Name of a default source.", min_len=1, max_len=MAX_NAME),
            "disabled": boolean("Whether it is off."),
        }
    )
    fields = {
        "disableAllDefaultSources": boolean("Turns every default source off."),
        "sources": array(source, "Default sources that differ from the others.", max_items=64),
    }
    return obj(fields, "Default catalogs of operators.")


def _scheduler() -> Schema:
    fields = {
        "policy": named("ConfigMap with a scheduling policy. Deprecated."),
        "profile": string("How pods are spread.", enum=("", "LowNodeUtilization", "HighNodeUtilization", "NoScoring")),
        "profileCustomizations": obj(
            {"dynamicResourceAllocation": string("Devices by claim.", enum=("", "Enabled", "Disabled"))},
            "Changes of the profile.",
        ),
        "defaultNodeSelector": string("Node selector of pods without one.", max_len=4096),
        "mastersSchedulable": boolean("Whether pods may run on control plane nodes; a hosted cluster has none."),
    }
    return obj(fields, "Settings of the scheduler.")
