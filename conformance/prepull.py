"""Images on every node before the suite starts, so that no spec's patience goes into pulling. Pure manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMESPACE = "conformance-images"
NAME = "images"


def manifests(images: Mapping[str, str]) -> list[dict[str, Any]]:
    """A namespace and one pod per node that runs each image once, one after the other, and then rests."""
    labels = {"app": NAME}
    rest = images["pause"]
    once = [
        {"name": name, "image": image, "command": _ends_at_once(name)}
        for name, image in images.items()
        if image != rest
    ]
    pod = {
        "initContainers": once,
        "containers": [{"name": "rest", "image": rest}],
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]


def _ends_at_once(name: str) -> list[str]:
    return ["/agnhost", "--version"] if name == "agnhost" else ["true"]
