"""Every metric is on its page, with its kind and labels, and alerts use only metrics that exist."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from tools.docs import inventory

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
TEXT = PAGE.read_text()
ENDINGS = ("_bucket", "_sum", "_count")


def documented() -> dict[str, tuple[str, str]]:
    rows = re.findall(r"^\| `(hcp_\w+)` \| (\w+) \| ([^|]*) \|", TEXT, re.MULTILINE)
    return {name: (kind, labels.replace("`", "").replace(" ", "")) for name, kind, labels in rows}


def test_every_metric_is_documented_as_it_is() -> None:
    real = {name: (kind, ",".join(labels)) for name, (kind, _, labels) in inventory.metrics().items()}
    assert documented() == real


def test_alerts_are_rules_and_use_metrics_that_exist() -> None:
    block = re.search(r"```yaml\n(groups:.*?)```", TEXT, re.DOTALL)
    assert block
    rules = [rule for group in yaml.safe_load(block[1])["groups"] for rule in group["rules"]]
    assert rules
    known = set(inventory.metrics())
    known |= {f"{name}{end}" for name in known for end in ENDINGS}
    for rule in rules:
        assert {"alert", "expr", "annotations"} <= set(rule)
        used = set(re.findall(r"\bhcp_\w+", rule["expr"]))
        assert used <= known, rule["alert"]
        assert used or "kube_customresource" in rule["expr"] or "up{" in rule["expr"], rule["alert"]
