"""The Kubernetes project's storage suite against the volumes of a hosted cluster, group after group.

A group that has its report is not run again: a run that was cut short goes on where it was. See docs/conformance.md.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from conformance import report, run
from conformance.options import Options, options_from

FOLDER = Path("build/storage-suite")
DRIVER = Path(__file__).with_name("storage-driver.yaml")
GROUPS = (
    "provisioning",
    "volumes",
    "volumeMode",
    "volume-expand",
    "snapshottable",
    "multiVolume",
    "subPath",
    "fsgroupchangepolicy",
)
# Ephemeral volumes and file systems other than ext4 are not announced; slow and disruptive specs are for a longer day.
SKIP = r"\[Disruptive\]|\[Slow\]|\[Serial\]|\[Feature:|\(ntfs\)|\(xfs\)|\(ext3\)|Inline-volume|Pre-provisioned"


def group_options(options: Options, group: str) -> Options:
    """One group of the suite, with a folder of its own."""
    return replace(
        options,
        folder=options.folder / group,
        focus=rf"External.Storage.*csi\.kubevirt\.io.*\] {group} ",
        more=(f"--storage.testdriver={DRIVER}", f"--ginkgo.skip={SKIP}", *options.more),
    )


def main() -> int:
    options = options_from(os.environ, FOLDER)
    if options.kubeconfig is None:
        print("KUBECONFIG names the kubeconfig of a hosted cluster with storage", file=sys.stderr)
        return 2
    wanted = sys.argv[1:] or list(GROUPS)
    code = 0
    for group in wanted:
        mine = group_options(options, group)
        if mine.junit.exists():
            found = report.read_junit(mine.junit.read_text())
            print(f"\n== {group}: there is a report already\n{report.render(found)}", flush=True)
            code |= 0 if found.well else 1
            continue
        mine.folder.mkdir(parents=True, exist_ok=True)
        print(f"\n== {group}", flush=True)
        code |= run.run(mine)
    return code


if __name__ == "__main__":
    sys.exit(main())
