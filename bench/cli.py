"""How fast the command line starts, in units of an empty interpreter of the same environment.

    python bench/cli.py [--repeat N] [--limit 6.5]

Runs are interleaved, so that a busy moment hits all of them alike; the median of each is compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 6.5


def measure(command: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=True)
    return time.perf_counter() - started


def commands(pull_secret: Path) -> dict[str, list[str]]:
    program = str(Path(sys.executable).with_name("hcp"))
    create = [program, "create", "cluster", "kubevirt", "--name", "demo", "--pull-secret", str(pull_secret)]
    full = [
        "--node-pool-replicas=3",
        "--memory=6Gi",
        "--cores=2",
        "--release-image=registry.example.com/release:1.36",
        "--infra-storage-class-mapping=rbd/gold,group=g1",
        "--host-device-name=nvidia-a100,count:2",
        "--toleration=key=cp,operator=exists,effect=noschedule",
        "--vm-node-selector=zone=a",
    ]
    return {
        "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
        "hcp --help": [program, "--help"],
        "hcp create cluster kubevirt --help": [program, "create", "cluster", "kubevirt", "--help"],
        "hcp create cluster kubevirt --render": [*create, "--render"],
        "… with many flags and Secrets": [*create, *full, "--render", "--render-sensitive"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=60, help="runs of each command")
    parser.add_argument("--limit", type=float, default=LIMIT, help="largest allowed ratio")
    arguments = parser.parse_args()
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryDirectory() as folder:
        pull_secret = Path(folder) / "pull-secret.json"
        pull_secret.write_text('{"auths": {}}')
        table = commands(pull_secret)
        times: dict[str, list[float]] = {name: [] for name in table}
        for command in table.values():
            measure(command, env)  # writes the bytecode, fills the page cache
        for _ in range(arguments.repeat):
            for name, command in table.items():
                times[name].append(measure(command, env))
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    base = next(iter(medians.values()))
    worst = 0.0
    for name, median in medians.items():
        ratio = median / base
        print(f"{name:<40} median {median * 1000:6.1f} ms  best {min(times[name]) * 1000:6.1f} ms  {ratio:5.2f} x")
        worst = max(worst, ratio)
    print(f"worst ratio {worst:.2f}, limit {arguments.limit}")
    return 0 if worst <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
