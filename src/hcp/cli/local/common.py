"""Flags that all `local` commands share."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

NAME = Flag("name", "string", "default", "name of the embedded cluster")
