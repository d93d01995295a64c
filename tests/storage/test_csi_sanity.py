"""The Kubernetes project's own tests of storage drivers against that of the embedded cluster; needs root, no machine.

`make test-storage`. The tests are compiled first when nobody did it before.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.eventually import eventually_sync
from tests.support.pool import btrfs_pool

from hcp import payload
from hcp.csi.local.names import loop_label
from hcp.linux import loop

NODE = "sanity"
MIB = 1 << 20


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The driver as its pod runs it."""
    folder = tmp_path_factory.mktemp("sanity")
    socket = folder / "csi.sock"
    hcp = Path(sys.executable).with_name("hcp")
    with btrfs_pool(folder) as pool:
        words = ["csi", "local", "--node", NODE, "--folder", str(pool / "csi"), "--socket", str(socket)]
        driver = subprocess.Popen([hcp, *words, "--register=false"])
        try:
            eventually_sync(socket.exists, "the driver answers")
            yield socket
        finally:
            driver.send_signal(signal.SIGTERM)
            assert driver.wait(60) == 0
            loop.detach_labelled(loop_label(NODE))


@pytest.mark.parametrize("kind", ["mount", "block"])
def test_every_spec_that_fits_the_driver_passes(endpoint: Path, tmp_path: Path, kind: str) -> None:
    program = payload.ensure(["csi-sanity"])["csi-sanity"] / "bin" / "csi-sanity"
    words = {
        "csi.endpoint": f"unix://{endpoint}",
        "csi.mountdir": tmp_path / "mount",
        "csi.stagingdir": tmp_path / "staging",
        "csi.testvolumesize": 64 * MIB,
        "csi.testvolumeexpandsize": 128 * MIB,
        "csi.testvolumeaccesstype": kind,
    }
    done = subprocess.run(
        [program, *(f"--{key}={value}" for key, value in words.items()), "--ginkgo.no-color"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    told = re.search(r"Ran (\d+) of (\d+) Specs", done.stdout)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    assert told
    print(done.stdout.strip().splitlines()[-4:])
    assert int(told.group(1)) > 50
