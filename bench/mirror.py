"""An image set from one registry into another, by `oc-mirror` and by Debian's skopeo, image by image the same.

    .venv/bin/python bench/mirror.py [--images 100] [--rounds 3] [--large 24] [--json FILE]

Both registries are on this machine, with TLS and a password. Each round has new, empty targets, and the two programs
take turns at going first. Some images are large, most are small, half of them share a base, as releases do. Then our
own program runs once more, with nothing to do. `--large` makes the large layers larger: the memory that a program
needs must not grow with them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from hcp import payload
from hcp.oci import Auths
from hcp.oci.push import Pusher, together
from hcp.oci.writer import ImageConfig, Layer, read_layout, write_image

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.image_sets import tags_on_disk
from tests.support.registry import Registry, start

MIB = 1 << 20
Times = list[tuple[float, float]]
Work = Callable[[], tuple[float, float]]


def images(folder: Path, count: int, large: int = 24) -> dict[str, Path]:
    """One in ten has a large layer, the others one of 1 MiB; every second one stands on a base of 8 MiB."""
    base = write_image(folder / "base", "base", [_layer("base", 8 * MIB)], ImageConfig())
    found = {}
    for number in range(count):
        name = f"team/part-{number:03}"
        size = large * MIB if number % 10 == 0 else MIB
        below = read_layout(base.path) if number % 2 else None
        write_image(folder / str(number), name, [_layer(name, size)], ImageConfig(), base=below)
        found[name] = folder / str(number)
    return found


def _layer(name: str, size: int) -> Layer:
    layer = Layer(name)
    chance = random.Random(name)
    layer.file("data", b"".join(chance.randbytes(min(MIB, size - at)) for at in range(0, size, MIB)))
    return layer


async def fill(registry: Registry, made: dict[str, Path]) -> None:
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem, auths=Auths(registry.auths)) as pusher:
        await together(pusher.push(path, name, tag="v1") for name, path in made.items())


class Bench:
    def __init__(self, folder: Path, source: Registry, names: list[str]) -> None:
        self.folder, self.source, self.names = folder, source, names
        self.skopeo = payload.ensure(["skopeo"])["skopeo"] / "bin" / "skopeo"

    def ours(self, target: Registry) -> Work:
        work = self._site(target)
        listed = [{"name": f"{self.source.host}/{name}:v1"} for name in self.names]
        document = {
            "apiVersion": "mirror.openshift.io/v2alpha1",
            "kind": "ImageSetConfiguration",
            "mirror": {"additionalImages": listed},
        }
        (work / "isc.yaml").write_text(yaml.safe_dump(document))
        program = str(Path(sys.executable).parent / "oc-mirror")
        words = [program, "-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}", "--v2"]
        return lambda: _run([*words, "--authfile", "auth.json", "--ca", "certs/ca.crt"], work)

    def theirs(self, target: Registry) -> Work:
        work = self._site(target)
        listed = {"images": {name: ["v1"] for name in self.names}, "cert-dir": "certs", "tls-verify": True}
        (work / "sync.yaml").write_text(yaml.safe_dump({self.source.host: listed}))
        words = [
            str(self.skopeo),
            "--insecure-policy",
            "sync",
            "--all",
            "--preserve-digests",
            "--src",
            "yaml",
            "--dest",
            "docker",
        ]
        words += ["--authfile", "auth.json", "--dest-cert-dir", "certs", "sync.yaml", target.host]
        return lambda: _run(words, work)

    def _site(self, target: Registry) -> Path:
        work = Path(tempfile.mkdtemp(dir=self.folder))
        (work / "certs").mkdir()
        (work / "certs/ca.crt").write_bytes(self.source.ca_pem + target.ca_pem)
        login = {"auth": base64.b64encode(b"pull:secret").decode()}
        (work / "auth.json").write_text(json.dumps({"auths": {self.source.host: login, target.host: login}}))
        return work


# A process counts the memory of whoever started it, until then, as its own: so a small one starts it.
STARTER = """
import resource, subprocess, sys, time
begun = time.monotonic()
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    print(time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, file=file)
sys.exit(code)
"""


def _run(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds, and the most memory in MiB."""
    starter = [sys.executable, "-I", "-S", "-c", STARTER, "used"]
    done = subprocess.run([*starter, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words[0]} failed:\n{done.stderr[-2000:]}")
    seconds, most = (folder / "used").read_text().split()
    return float(seconds), float(most)


def _named(ours: Times, theirs: Times, again: Times) -> list[tuple[str, Times]]:
    return [("oc-mirror", ours), ("skopeo sync", theirs), ("second run", again)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=24, help="MiB of the large layers")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-mirror-"))
    processes = []
    try:
        (folder / "source").mkdir()
        source, process = start(folder / "source", passwords=True)
        processes.append(process)
        made = images(folder / "images", options.images, options.large)
        asyncio.run(fill(source, made))
        total = sum(read_layout(path).size for path in made.values())
        bench = Bench(folder, source, list(made))
        ours: Times = []
        theirs: Times = []
        again: Times = []
        for number in range(options.rounds):
            targets = []
            for name in ("ours", "theirs"):
                (folder / f"{name}{number}").mkdir()
                target, process = start(folder / f"{name}{number}", passwords=True)
                targets.append(target)
                processes.append(process)
            mine = bench.ours(targets[0])
            turns = [(ours, mine), (theirs, bench.theirs(targets[1]))]
            for times, work in turns if number % 2 else turns[::-1]:
                times.append(work())
            again.append(mine())
            have = [set(tags_on_disk(folder / f"{name}{number}/data").values()) for name in ("ours", "theirs")]
            if have[0] != have[1] or len(have[0]) != options.images:
                raise SystemExit("the two targets differ")
        seconds = {name: [one[0] for one in times] for name, times in _named(ours, theirs, again)}
        median = {name: statistics.median(times) for name, times in seconds.items()}
        found = {
            "images": options.images,
            "MiB": total // MIB,
            **{name: round(value, 2) for name, value in median.items()},
            "ratio": round(median["oc-mirror"] / median["skopeo sync"], 2),
            "second run per 100 images": round(median["second run"] * 100 / options.images, 2),
            "most memory, MiB": {
                name: round(max(one[1] for one in times)) for name, times in _named(ours, theirs, again)
            },
            "rounds": seconds,
        }
        print(json.dumps(found, indent=2))
        if options.json:
            options.json.write_text(json.dumps(found, indent=2))
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
