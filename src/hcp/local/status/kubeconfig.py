"""The administrator's kubeconfig as YAML."""

from __future__ import annotations

import json

import yaml

from hcp.errors import HcpError
from hcp.local.state.lookup import existing


def admin_kubeconfig(name: str) -> str:
    layout, _ = existing(name)
    try:
        config = json.loads(layout.kubeconfig.read_text())
    except OSError as error:
        raise HcpError(
            f"Cluster '{name}' has no kubeconfig yet", hint=f"hcp local up --name {name} makes it."
        ) from error
    for entry in (*config["clusters"], *config["contexts"]):
        if entry["name"] == "cluster":
            entry["name"] = f"hcp-{name}"
    context = config["contexts"][0]
    context["name"] = config["current-context"] = f"hcp-{name}"
    context["context"]["cluster"] = f"hcp-{name}"
    return yaml.safe_dump(config, sort_keys=False)
