"""Hosted pods whose etcd may start from a snapshot, as its pod does: the container before etcd is run for real."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.hosted_pods import HostedPods

RECEIVE = "import sys; from hcp.backup.receiving import main; sys.exit(main(sys.argv[1:3], waiting=int(sys.argv[3])))"


class RestoredPods(HostedPods):
    """`filling` is the process that waits for a snapshot, while it does."""

    filling: asyncio.subprocess.Process | None = None

    @property
    def volume(self) -> Path:
        return self._directory / "etcd" / "data"

    async def _roll_etcd(self, pod: dict[str, Any]) -> None:
        for first in pod.get("initContainers") or ():
            python, dash, module, *words = first["command"]
            assert (python, dash) == ("python3", "-m")
            self.volume.mkdir(parents=True, exist_ok=True)
            self.filling = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, f"--root={self.volume}", f"--etcdutl={self._bin_dir / 'etcdutl'}"),
                *(word.replace("$(POD_NAME)", "etcd-0") for word in words),
            )
            assert await self.filling.wait() == 0
            self.filling = None
        await super()._roll_etcd(pod)

    async def send(self, sha256: str, pieces: AsyncIterator[bytes]) -> int:
        """What `hcp restore` has run in that container; its exit code."""
        assert self.filling is not None
        receiving = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RECEIVE, sha256, str(self.volume), str(self.filling.pid)),
            stdin=asyncio.subprocess.PIPE,
        )
        assert receiving.stdin is not None
        async for piece in pieces:
            receiving.stdin.write(piece)
            await receiving.stdin.drain()
        receiving.stdin.close()
        return await receiving.wait()
