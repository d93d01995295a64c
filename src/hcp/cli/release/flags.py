"""Flags that the `release` commands share."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

_REGISTRY = "Registry"
REGISTRY_FLAGS = (
    Flag("authfile", "string", "", "file with logins (default: $REGISTRY_AUTH_FILE, podman's auth.json, docker's "
         "config.json)", metavar="file", group=_REGISTRY),
    Flag("ca", "string", "", "file with CAs the registry's certificate may come from, besides the system's",
         metavar="file", group=_REGISTRY),
    Flag("insecure", "bool", False, "the registry has no TLS: everything, logins too, can be read on the way",
         group=_REGISTRY),
)  # fmt: skip
WHICH = "image reference, folder of an OCI layout (oci:PATH), or a version built here such as 1.36"
OUTPUT = Flag("output", "string", "text", "how to print", short="o", choices=("text", "json"), group="General")
