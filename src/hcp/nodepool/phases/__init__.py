"""What a pass over a NodePool does, in order; phases in one row run at the same time."""

from __future__ import annotations

from hcp.nodepool.phases import (
    autoscaling,
    boot_image,
    configuration,
    documents,
    health_check,
    hosted_cluster,
    hosted_namespace,
    ignition_endpoint,
    machine_deployment,
    machine_template,
    observe,
    old_secrets,
    old_templates,
    own_fields,
    platform,
    release,
    unmanaged_current,
    unmanaged_fields,
    unmanaged_observe,
    unmanaged_platform,
)
from hcp.nodepool.scope import Learned, Scope, learn
from hcp.runtime.phases import Phase, Phases

PHASES: Phases[Scope, Learned] = Phases(
    "nodepool",
    [
        Phase("hosted-cluster", hosted_cluster.run),
        Phase("own-fields", own_fields.run),
        Phase("release", release.run),
        Phase("autoscaling", autoscaling.run, critical=False),
        Phase("ignition-endpoint", ignition_endpoint.run),
        Phase("hosted-namespace", hosted_namespace.run),
        Phase("platform", platform.run),
        Phase("boot-image", boot_image.run),
        Phase("configuration", configuration.run),
        Phase("documents", documents.run),
        Phase("machine-template", machine_template.run),
        Phase("machine-deployment", machine_deployment.run),
        (
            Phase("health-check", health_check.run, critical=False),
            Phase("old-templates", old_templates.run, critical=False),
            Phase("old-secrets", old_secrets.run, critical=False),
        ),
        Phase("observe", observe.run, always=True),
    ],
    learn,
)

# Machines of the user's own: no machine, template or health check is made, and nothing of KubeVirt is looked at.
UNMANAGED: Phases[Scope, Learned] = Phases(
    "nodepool",
    [
        Phase("hosted-cluster", hosted_cluster.run),
        Phase("own-fields", unmanaged_fields.run),
        Phase("release", release.run),
        Phase("ignition-endpoint", ignition_endpoint.run),
        Phase("hosted-namespace", hosted_namespace.run),
        Phase("platform", unmanaged_platform.run),
        Phase("configuration", configuration.run),
        Phase("documents", documents.run),
        Phase("current", unmanaged_current.run),
        Phase("old-secrets", old_secrets.run, critical=False),
        Phase("observe", unmanaged_observe.run, always=True),
    ],
    learn,
)
