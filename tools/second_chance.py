"""Runs pytest, and once more, one after the other, those tests that failed: who passes only then is flaky, and named.

It takes the name of the run, by which its cache is kept apart from others, and then what pytest takes. The exit code is
that of the last run. What ended otherwise than by failed tests is not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

FAILED = 1
CACHES = Path(".pytest_cache")
# Of what xdist would do, nothing.
ALONE = ("-n0", "--last-failed", "--last-failed-no-failures=none")


def main(words: Sequence[str], run: Callable[[Sequence[str]], int] | None = None) -> int:
    run = run or _pytest
    cache = CACHES / words[0]
    given = [*words[1:], "-o", f"cache_dir={cache}"]
    code = run([*given, "--cache-clear"])
    if code != FAILED:
        return code
    names = failed(cache)
    _say(f"{len(names)} failed. Once more, one after the other; who passes now is flaky, which is a defect:", names)
    code = run([*given, *ALONE])
    if code == 0:
        _say("Flaky: failed, and passed when run alone. Mend these:", names)
    return code


def failed(cache: Path) -> list[str]:
    """What pytest keeps of the run before."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def _say(heading: str, names: Sequence[str]) -> None:
    line = "=" * 100
    print("\n".join(("", line, heading, *(f"  {name}" for name in names), line, "")), flush=True)


def _pytest(words: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
