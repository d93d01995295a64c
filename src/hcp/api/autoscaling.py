"""How the number of nodes follows the load."""

from __future__ import annotations

from hcp.api.parts import LABEL_KEY
from hcp.api.schema import INT32, Schema, array, integer, obj, rule, string

LABEL_KEYS = rule(f"self.all(one, one.matches('{LABEL_KEY}'))", "each entry must be a label key")


def autoscaling() -> Schema:
    def seconds(doc: str) -> Schema:
        return integer(doc, minimum=0, maximum=86400)

    scale_down = obj(
        {
            "delayAfterAddSeconds": seconds("Wait after a node was added."),
            "delayAfterDeleteSeconds": seconds("Wait after a node was removed."),
            "delayAfterFailureSeconds": seconds("Wait after a removal failed."),
            "unneededDurationSeconds": seconds("How long a node must be unneeded."),
            "utilizationThresholdPercent": integer("Below this use a node is unneeded.", minimum=0, maximum=100),
        },
        "When nodes are removed.",
    )
    expander = string(enum=("LeastWaste", "Priority", "Random"))
    fields = {
        "scaling": string(
            "Whether nodes are also removed.",
            enum=("ScaleUpOnly", "ScaleUpAndScaleDown"),
            default="ScaleUpAndScaleDown",
        ),
        "scaleDown": scale_down,
        "balancingIgnoredLabels": array(
            string(max_len=317), "Labels that do not make pools different.", max_items=64, rules=[LABEL_KEYS]
        ),
        "maxNodesTotal": integer("Most nodes in all pools.", minimum=0, maximum=INT32),
        "maxPodGracePeriod": integer("Seconds a pod gets to end; 600 when unset.", minimum=0, maximum=INT32),
        "maxNodeProvisionTime": string(
            "How long a new node may take; 15m when unset.",
            max_len=100,
            pattern=r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
        ),
        "maxFreeDifferenceRatioPercent": integer(
            "How different similar pools may be; 10 when unset.", minimum=0, maximum=100
        ),
        "podPriorityThreshold": integer("Pods below this priority never add nodes; -10 when unset.", maximum=INT32),
        "expanders": array(
            expander, "How a pool is chosen; Priority, LeastWaste when unset.", min_items=1, max_items=3
        ),
    }
    rules = [
        rule(
            "!has(self.scaleDown) || self.scaling == 'ScaleUpAndScaleDown'",
            "scaleDown can only be set when scaling is ScaleUpAndScaleDown",
        )
    ]
    return obj(fields, "How the number of nodes follows the load.", rules=rules)
