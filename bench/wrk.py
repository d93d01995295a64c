"""wrk from Debian's package, and two things that it asks in turns."""

from __future__ import annotations

import re
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

TRIES = 5
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True)
class Measured:
    """One round."""

    rate: float
    p99: float
    # Processor time of the program that was asked, for one request, in microseconds; 0 where nobody looked.
    cost: float


def _nothing() -> float:
    return 0.0


def ask(
    command: list[str], url: str, connections: int, seconds: int, spent: Callable[[], float] = _nothing
) -> Measured:
    """`command` begins wrk; `spent` tells how many seconds of a processor were spent so far.

    A round in which nobody got a processor says nothing about either side, and is made again.
    """
    options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "--latency"]
    for _ in range(TRIES):
        before = spent()
        said = subprocess.run([*command, *options, url], capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in said or "Socket errors" in said:
            raise SystemExit(f"not all requests were answered:\n{said}")
        rate, p99, total = (
            re.search(p, said) for p in (r"Requests/sec:\s+([\d.]+)", r"99%\s+([\d.]+)(us|ms|s|m)", r"(\d+) requests")
        )
        if rate and p99 and total and total[1] != "0":
            cost = (spent() - before) / int(total[1]) * 1e6
            return Measured(float(rate[1]), float(p99[1]) * _MILLISECONDS[p99[2]], cost)
    raise SystemExit(f"no request was answered, ask for longer rounds (--seconds):\n{said}")


@dataclass(frozen=True)
class Compared:
    """By hand and ours, asked in turns."""

    by_hand: tuple[Measured, ...]
    ours: tuple[Measured, ...]

    @property
    def ratios(self) -> tuple[float, float, float]:
        """Of the rates of neighbours: the lower quarter, the middle, the upper quarter."""
        low, middle, high = statistics.quantiles(
            [ours.rate / hand.rate for hand, ours in zip(self.by_hand, self.ours, strict=True)], n=4
        )
        return low, middle, high

    def row(self, name: str) -> str:
        low, ratio, high = self.ratios
        found = f"{name:<36}{_middle(self.by_hand, 'rate'):>10.0f}{_middle(self.ours, 'rate'):>10.0f}"
        found += (
            f"{ratio:>8.2f} ({low:.2f}–{high:.2f}){_middle(self.by_hand, 'p99'):>9.2f}{_middle(self.ours, 'p99'):>9.2f}"
        )
        if self.ours[0].cost:
            found += f"{_middle(self.by_hand, 'cost'):>8.1f}{_middle(self.ours, 'cost'):>8.1f}"
        return found


HEAD = f"\n{'path':<36}{'by hand/s':>10}{'router/s':>10}{'ratio (quarters)':>20}{'p99 ms':>18}{'µs/request':>16}"


def compare(by_hand: Callable[[], Measured], ours: Callable[[], Measured], rounds: int) -> Compared:
    """In the order ours, by hand, by hand, ours: what disturbs the machine for longer than a turn disturbs both."""
    by_hand()  # connections to pods, caches
    ours()
    found: dict[Callable[[], Measured], list[Measured]] = {by_hand: [], ours: []}
    for turn in range(rounds):
        for which in (by_hand, ours) if turn % 2 else (ours, by_hand):
            found[which].append(which())
    return Compared(tuple(found[by_hand]), tuple(found[ours]))


def _middle(measured: tuple[Measured, ...], what: str) -> float:
    return float(statistics.median(getattr(one, what) for one in measured))
