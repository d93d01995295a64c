"""`create nodepool`: read the flags, then print the NodePool or create it."""

from __future__ import annotations

import sys

from hcp.api import names
from hcp.cli.create.nodepool.from_flags import worker_options
from hcp.cli.create.nodepool.objects import node_pool
from hcp.cli.create.options import WorkerOptions
from hcp.cli.engine import grammar
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import note, warn
from hcp.cli.engine.yaml_output import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any


def run(call: Call) -> int | Coroutine[Any, Any, int]:
    options = pool_options(call)
    if not call.switch("render"):
        from hcp.cli.create.nodepool.apply import create

        return create(call, options)
    pool = node_pool(options)
    if not options.release_image:
        # Absent means the hosted cluster's release; an empty text would be refused when applied.
        del pool["spec"]["release"]
    sys.stdout.write(dump(pool))
    note(f"NodePool {options.name} was rendered, not created")
    return 0


def pool_options(call: Call) -> WorkerOptions:
    if not call.text("name"):
        raise UsageError('required flag(s) "name" not set', hint="--name takes the name of the new node pool")
    for flag in ("name", "cluster-name", "namespace"):
        problem = names.label_problem(call.text(flag))
        if problem:
            raise grammar.refuse(flag, call.text(flag), f"it {problem}", "lower-case letters, digits and '-'")
    if not call.changed("cluster-name"):
        warn("--cluster-name is not given: the pool is for the cluster called example")
    options = worker_options(call)
    options.name, options.cluster_name = call.text("name"), call.text("cluster-name")
    flag = "node-count" if options.platform == names.PLATFORM_KUBEVIRT and call.changed("node-count") else "replicas"
    options.replicas = call.number(flag)
    if options.replicas < 0:
        raise grammar.refuse(flag, str(options.replicas), "the number of nodes cannot be negative", "a number from 0")
    return options
