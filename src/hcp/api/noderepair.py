"""NodeRepair: that a node is sick and what is done about it; and the template of such requests.

Cluster API's health check makes a request from the pool's template when it finds a machine unhealthy, and deletes it
when the machine is well again. The operator works on it and writes its status. Nobody else makes one.
"""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.api.crd import column, crd
from hcp.api.schema import Schema, duration, integer, obj, string

HELD, RESTARTING, REPLACING, RECOVERED = "Held", "Restarting", "Replacing", "Recovered"
MOST_RESTARTS = 10


def policy() -> Schema:
    fields = {
        "restarts": integer(
            "How often the virtual machine is restarted before the machine is replaced.",
            minimum=0,
            maximum=MOST_RESTARTS,
            default=1,
        ),
        "restartTimeout": duration("How long a node may take to be Ready after a restart.", default="10m"),
        "within": duration("Restarts longer ago than this are not counted any more.", default="1h"),
    }
    return obj(fields, "The order of remedies.")


def status() -> Schema:
    fields = {
        "phase": string("What is under way.", enum=(HELD, RESTARTING, REPLACING, RECOVERED)),
        "message": string("The same in words.", max_len=1024),
    }
    return obj(fields, "What is.")


def build() -> list[dict[str, Any]]:
    made = obj(
        {
            "metadata": obj(
                {
                    kind: {
                        "type": "object",
                        "description": f"Their {kind}.",
                        "maxProperties": 20,
                        "additionalProperties": string(max_len=512),
                    }
                    for kind in ("annotations", "labels")
                },
                "Metadata of the requests.",
            ),
            "spec": policy(),
        },
        "What requests look like.",
        required=("spec",),
    )
    request = crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="NodeRepair",
        plural="noderepairs",
        doc="A sick node and its remedy. It has the name of the Machine.",
        spec=policy(),
        status=status(),
        columns=[
            column("Phase", ".status.phase", "What is under way"),
            column("Age", ".metadata.creationTimestamp", kind="date"),
            column("Message", ".status.message", "The same in words"),
        ],
    )
    template = crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="NodeRepairTemplate",
        plural="noderepairtemplates",
        doc="How sick nodes of a pool are repaired.",
        spec=obj({"template": made}, "What is wanted.", required=("template",)),
    )
    return [request, template]
