"""Runs the operator as `hcp operator run` does, and ends it the hard way after a number of writes, if asked to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from hcp.kube import Client, load_config
from hcp.operator import process
from hcp.operator.support import Support
from hcp.runtime import setup_logging

WRITES = frozenset({"create", "update", "patch", "delete"})


def main(kubeconfig: str, die_after: int) -> None:
    seen = 0

    def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
        nonlocal seen
        if verb in WRITES and not target.startswith(("leases", "events")):
            seen += 1
            if seen == die_after:
                os.kill(os.getpid(), signal.SIGKILL)

    class Watched(Client):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **{**options, "observer": observer})  # type: ignore[arg-type]

    setattr(process, "Client", Watched)  # noqa: B010 - the module does not offer it for change
    setup_logging("info", form="text")
    options = process.Options(
        load_config(kubeconfig),
        health_port=-1,
        inside=False,
        # Where the tests' own registries listen.
        internal_registries=frozenset({"localhost", "127.0.0.1:1"}),
        support=Support(),
        identity="test",
    )
    asyncio.run(process.Operator(options).run())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
