"""The Kubernetes project's storage suite against the volumes of a hosted cluster, a few specs at a time.

Each shard leaves its report; what has one is not run again, so a run that was cut short goes on where it was.
See docs/conformance.md.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import ParseError

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
    """What earlier shards found out, and what KNOWN says of runs elsewhere; the latest word on a spec counts.

    A spec that was ended with its shard (Ctrl-C) has said nothing.
    """
    elsewhere = os.environ.get("KNOWN")
    found = _record(Path(elsewhere)) if elsewhere else {}
    for path in sorted(folder.glob("shard-*/junit_01.xml")):
        with contextlib.suppress(ParseError):  # cut off: as if there was none
            found |= {one.name: one for one in report.read_junit(path.read_text()).results if not one.cut}
    return found


def _record(path: Path) -> dict[str, report.Result]:
    try:
        return storage_record.read(path.read_text())
    except (OSError, ValueError) as error:
        raise run.Failed(f"KNOWN={path} is no record of a run: {error}") from error


def told(folder: Path, names: list[str], groups: list[str]) -> str:
    """Writes down all that is known by now, of other groups too, so that a run elsewhere can take it up.

    Gives the table of the groups that were asked for.
    """
    found = known(folder)
    specs = {name for name in found if storage_plan.group_of(name)}
    (folder / RECORD).write_text(storage_record.write(specs, found))
    return storage_plan.table(names, found, groups)


def shard(options: Options, programs: dict[str, Path], names: list[str]) -> None:
    """Runs some specs. A shard without a report is told; its specs count as not run, and the next one begins."""
    number = 1 + max((int(path.name[6:]) for path in options.folder.glob("shard-*")), default=0)
    mine = replace(options, folder=options.folder / f"shard-{number:03}", focus=suite.focus_of(names))
    mine.folder.mkdir(parents=True)
    try:
        run.run_suite(mine, programs)
    except (run.Failed, ParseError) as failure:
        print(f"\n{mine.folder.name} left no whole report, so its specs count as not run: {failure}", file=sys.stderr)


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
    described = driver(options.folder, shared=shared)
    try:
        return suite_of(
            replace(options, more=(f"--storage.testdriver={described}", *options.more)), groups, shared=shared
        )
    except run.Failed as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1


def suite_of(options: Options, groups: list[str], *, shared: bool) -> int:
    known(options.folder)  # a record that cannot be read is told before anything is built
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
        print(f"\n{told(options.folder, names, groups)}", flush=True)
    found = {name: one for name, one in known(options.folder).items() if name in names}
    print(f"\n{storage_plan.reasons(found)}\n\n{told(options.folder, names, groups)}", flush=True)
    return 0 if found and len(found) == len(names) and all(one.state != "failed" for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
