"""What the first container of an etcd pod does where etcd starts from a snapshot: `python3 -m hcp.backup.filling`.

Where etcd has data already nothing happens, so the pod may start as often as it likes. Else it gets the snapshot, from
an address or from whoever sends it (`hcp.backup.receiving`), checks it, and has etcdutl make the data of this member
of it. The data appears in one step: what breaks off begins anew, and etcd never starts empty or with half of it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from hcp.backup.limits import LARGEST_SNAPSHOT

ROOT = Path("/var/lib")
WORK = "restore"
FILE = "snapshot.db"
_CHUNK = 1024 * 1024
# Numbers of changes jump by this much: who has seen a newer one than the snapshot's must not take old for new.
BUMP = 1_000_000_000
_TIMEOUT = 60


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="filling")
    parser.add_argument("--root", type=Path, default=ROOT, help="the volume; data lies in its folder data")
    parser.add_argument("--url", default="", help="where the snapshot is; none: it is sent")
    parser.add_argument("--initial-cluster-state", default="new", help="existing: there is a cluster to join instead")
    parser.add_argument("--etcdutl", default="etcdutl")
    for name in ("name", "initial-cluster", "initial-cluster-token", "initial-advertise-peer-urls"):
        parser.add_argument(f"--{name}", required=True)
    asked = parser.parse_args(words)
    # Before anything else: whoever has sent a snapshot says so by this signal, and it must not get lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    data, work = asked.root / "data", asked.root / WORK
    if (data / "member").is_dir():
        shutil.rmtree(work, ignore_errors=True)
        print("etcd has data already; nothing is restored", flush=True)
        return 0
    if asked.initial_cluster_state != "new":
        print("there is a cluster to join; nothing is restored", flush=True)
        return 0
    work.mkdir(mode=0o700, exist_ok=True)
    file = work / FILE
    if asked.url and not file.exists():
        fetch(asked.url, file)
    elif not asked.url and not wait_for(file):
        return 1
    restore(asked, file, work / "data", data)
    shutil.rmtree(work, ignore_errors=True)
    print("the snapshot was restored", flush=True)
    return 0


def wait_for(file: Path) -> bool:
    """Until the file is there; False when the pod ends before."""
    print("waiting for the snapshot", flush=True)
    while not file.exists():
        if signal.sigwait({signal.SIGUSR1, signal.SIGTERM}) == signal.SIGTERM:
            return False
    return True


def fetch(url: str, file: Path) -> None:
    """Nothing of the address is printed: it may carry a signature that opens it."""
    part = file.with_suffix(".part")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, part.open("wb") as out:
            size = 0
            while chunk := answer.read(_CHUNK):
                size += len(chunk)
                if size > LARGEST_SNAPSHOT:
                    raise SystemExit("the snapshot is larger than etcd can be")
                out.write(chunk)
            wanted = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as exc:
        raise SystemExit(f"the snapshot cannot be fetched: the server says {exc.code} {exc.reason}") from None
    except (OSError, ValueError) as exc:
        raise SystemExit(f"the snapshot cannot be fetched: {getattr(exc, 'reason', None) or exc}") from None
    if wanted is not None and wanted.isdigit() and int(wanted) != size:
        raise SystemExit(f"the snapshot did not arrive whole: {size} of {wanted} bytes")
    if not own_sum_is_right(part):
        raise SystemExit("what is there is no snapshot of etcd, or a damaged one: its own sum is another one")
    part.rename(file)


def own_sum_is_right(file: Path) -> bool:
    """The last 32 bytes of a snapshot are the SHA-256 of all before them."""
    left = file.stat().st_size - 32
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while left > 0 and (chunk := source.read(min(_CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
        return left == 0 and digest.digest() == source.read()


def restore(asked: argparse.Namespace, file: Path, made: Path, data: Path) -> None:
    shutil.rmtree(made, ignore_errors=True)
    command = [
        asked.etcdutl,
        *("snapshot", "restore", str(file)),
        f"--name={asked.name}",
        f"--initial-cluster={asked.initial_cluster}",
        f"--initial-cluster-token={asked.initial_cluster_token}",
        f"--initial-advertise-peer-urls={asked.initial_advertise_peer_urls}",
        f"--data-dir={made}",
        f"--bump-revision={BUMP}",
        "--mark-compacted",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        file.unlink(missing_ok=True)
        raise SystemExit(f"etcdutl cannot restore the snapshot: {(done.stderr or done.stdout).strip()[-1500:]}")
    os.sync()
    if data.is_dir():
        data.rmdir()  # an empty one: else etcd would have data
    made.rename(data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
