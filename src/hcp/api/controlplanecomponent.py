"""ControlPlaneComponent: how one part of a control plane is. The operator writes it, nobody else.

It has no status subresource: a part is told in one write instead of two.
"""

from __future__ import annotations

from typing import Any

from hcp.api import names, parts
from hcp.api.crd import column, condition_column, crd
from hcp.api.schema import Schema, array, integer, obj, string


def status() -> Schema:
    resource = obj(
        {
            "group": string("API group.", max_len=255),
            "kind": string("Kind.", max_len=255),
            "name": string("Name.", max_len=255),
        },
        required=("group", "kind", "name"),
    )
    fields = {
        "conditions": parts.conditions(),
        "version": string("Version of the release that is rolled out.", max_len=255),
        "resources": array(resource, "Objects the part is made of.", max_items=100),
        "observedGeneration": integer("The generation it speaks about.", fmt="int64"),
    }
    return obj(fields, "What is.")


def build() -> dict[str, Any]:
    found = crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="ControlPlaneComponent",
        plural="controlplanecomponents",
        short_names=("cpc", "cpcs"),
        doc="One part of a control plane.",
        spec=obj({}, "Nothing is wanted here: the HostedCluster decides."),
        spec_required=False,
        status=status(),
        columns=[
            column("Version", ".status.version", "Version of the release"),
            condition_column("Available", "Available", doc="Whether it answers"),
            condition_column("RolloutComplete", "RolloutComplete", doc="Whether all of it is new"),
            condition_column("Message", "Available", "message", "Why it is or is not available"),
            column(
                "RolloutCompleteMessage",
                '.status.conditions[?(@.type=="RolloutComplete")].message',
                "What is missing",
                wide=True,
            ),
        ],
    )
    del found["spec"]["versions"][0]["subresources"]
    return found
