"""Optional parts of the guest, and the metrics of its control plane."""

from __future__ import annotations

from hcp.api.schema import Schema, array, obj, rule, string

# One of ours, the only one that can be changed later: Prometheus inside the guest. The others are those of the
# established API.
MONITORING = "Monitoring"
CAPABILITIES = (
    *("ImageRegistry", "openshift-samples", "Insights", "baremetal", "Console", "NodeTuning", "Ingress"),
    MONITORING,
)
METRICS_SETS = ("Telemetry", "SRE", "All")


def _but_monitoring(whose: str) -> str:
    """Both lists as one, without the name that may come and go."""

    def of(field: str) -> str:
        return f"(has({whose}.{field}) ? {whose}.{field}.filter(one, one != '{MONITORING}') : [])"

    return f"({of('enabled')} + ['/'] + {of('disabled')})"


def capabilities() -> Schema:
    def listed(doc: str) -> Schema:
        return array(string(enum=CAPABILITIES), doc, max_items=25)

    fields = {"enabled": listed("Parts to have."), "disabled": listed("Parts to leave out.")}
    rules = [
        rule(
            "!has(self.enabled) || !has(self.disabled) || self.enabled.all(one, !(one in self.disabled))",
            "a capability may not be in both enabled and disabled",
        ),
        rule(
            "!has(self.disabled) || !('Ingress' in self.disabled) || 'Console' in self.disabled",
            "Ingress can only be disabled when Console is disabled too",
        ),
        rule(f"{_but_monitoring('self')} == {_but_monitoring('oldSelf')}", "capabilities is immutable"),
    ]
    return obj(fields, "Optional parts of the guest.", default={}, rules=rules)


def monitoring() -> Schema:
    forwarding = obj(
        {
            "mode": string("Whether metrics leave the cluster.", enum=("Forward", "None")),
            "metricsSet": string("Which of them.", enum=METRICS_SETS),
        },
        "Sending metrics elsewhere.",
        required=("mode",),
    )
    fields = {
        "metricsForwarding": forwarding,
        "metricsSet": string("Which metrics are kept.", enum=METRICS_SETS),
    }
    return {**obj(fields, "Metrics of the control plane."), "minProperties": 1}
