"""The Kubernetes project's storage suite against the volumes of a hosted cluster, a few specs at a time.

Each shard leaves its report; what has one is not run again, so a run that was cut short goes on where it was.
See docs/conformance.md.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from conformance import report, run, steps, storage_plan, storage_record, suite
from conformance.options import Options, options_from

from hcp import payload

FOLDER = Path("build/storage-suite")
SHARED_FOLDER = Path("build/storage-suite-shared")
DRIVER = Path(__file__).with_name("storage-driver.yaml")
NAME = "csi.kubevirt.io"
SHARD = 8
RECORD = "results.tsv"


def listed(options: Options, programs: dict[str, Path], groups: list[str], *, shared: bool) -> list[str]:
    """Names of all specs of these groups that the driver may pass, as the suite itself knows them."""
    skip = storage_plan.SKIP_SHARED if shared else storage_plan.SKIP
    apart = replace(
        options,
        folder=options.folder / "list",
        focus=storage_plan.focus(NAME, groups, shared=shared),
        more=(*options.more, f"--ginkgo.skip={skip}"),
        parallel=1,
    )
    apart.folder.mkdir(parents=True, exist_ok=True)
    found = run.run_suite(apart, programs, dry=True)
    return storage_plan.order([one.name for one in found.results], groups)


def driver(folder: Path, *, shared: bool) -> Path:
    """The file that says what the suite may expect."""
    if not shared:
        return DRIVER
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "driver.yaml"
    made.write_text(storage_plan.shared_driver(DRIVER.read_text()))
    return made


def known(folder: Path) -> dict[str, report.Result]:
    """What earlier shards found out, and what KNOWN says of runs elsewhere; the latest word on a spec counts."""
    elsewhere = os.environ.get("KNOWN")
    found = storage_record.read(Path(elsewhere).read_text()) if elsewhere else {}
    for path in sorted(folder.glob("shard-*/junit_01.xml")):
        found |= {one.name: one for one in report.read_junit(path.read_text()).results}
    return found


def shard(options: Options, programs: dict[str, Path], names: list[str]) -> None:
    number = 1 + max((int(path.name[6:]) for path in options.folder.glob("shard-*")), default=0)
    mine = replace(options, folder=options.folder / f"shard-{number:03}", focus=suite.focus_of(names))
    mine.folder.mkdir(parents=True)
    run.run_suite(mine, programs)


def main() -> int:
    shared = os.environ.get("SHARED") == "1"
    options = options_from(os.environ, SHARED_FOLDER if shared else FOLDER)
    if options.kubeconfig is None:
        print("KUBECONFIG names the kubeconfig of a hosted cluster with storage", file=sys.stderr)
        return 2
    groups = sys.argv[1:] or list(storage_plan.GROUPS)
    if strange := [one for one in groups if one not in storage_plan.GROUPS]:
        print(f"No groups: {', '.join(strange)}. There are {', '.join(storage_plan.GROUPS)}", file=sys.stderr)
        return 2
    options = replace(options, more=(f"--storage.testdriver={driver(options.folder, shared=shared)}", *options.more))
    programs = payload.ensure([suite.PAYLOAD, run.KUBERNETES, *(suite.IMAGES if options.push else ())])
    names = listed(options, programs, groups, shared=shared)
    size, minutes = int(os.environ.get("SHARD") or SHARD), float(os.environ.get("MINUTES") or 24 * 60)
    todo = storage_plan.pending(names, known(options.folder), failed_too=os.environ.get("AGAIN") == "failed")
    if todo and options.push:
        run.hcp(steps.images(options, hosted=False))
    if todo and options.own_images:
        run.pull(options, programs[run.KUBERNETES] / "bin" / "kubectl")
    end = time.monotonic() + minutes * 60
    while todo and time.monotonic() < end:
        shard(options, programs, todo[:size])
        todo = todo[size:]
        (options.folder / RECORD).write_text(storage_record.write(names, known(options.folder)))
        print(f"\n{storage_plan.table(names, known(options.folder), groups)}", flush=True)
    found = {name: one for name, one in known(options.folder).items() if name in names}
    print(f"\n{storage_plan.reasons(found)}\n\n{storage_plan.table(names, found, groups)}", flush=True)
    return 0 if found and len(found) == len(names) and all(one.state != "failed" for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
