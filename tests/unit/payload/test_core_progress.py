"""What a person sees while parts are being built."""

from __future__ import annotations

import io
import time

from tests.support.unit.workshop import Workshop

from hcp.payload import Progress
from hcp.payload.progress import duration


def test_plain_lines_say_what_how_and_how_many_are_left(workshop: Workshop) -> None:
    workshop.add("one")
    workshop.add("two", deps=("one",))
    workshop.engine().ensure(["two"])
    lines = workshop.lines()
    assert lines[0] == "To make: 2, about a minute to go (one, two)"
    assert lines[1] == "one: version 1.0 is built (1 left after this, about a minute to go)"
    assert lines[2].startswith("one: built in ")
    assert lines[2].endswith(", 1 left")
    assert lines[-1].endswith(", 0 left")
    assert not any("\r" in line or "\x1b" in line for line in lines)


def test_nothing_is_said_when_there_is_nothing_to_do(workshop: Workshop) -> None:
    workshop.add("one")
    workshop.engine().ensure(["one"])
    workshop.screen.truncate(0)
    workshop.engine().ensure(["one"])
    assert workshop.screen.getvalue().strip("\0") == ""


def test_a_terminal_gets_one_live_line() -> None:
    screen = io.StringIO()
    with Progress(screen, live=True) as progress:
        progress.plan(["one", "two"])
        progress.start("one", "built with Go")
        progress.detail("one", "compiling one")
        progress.done("one", "built with Go")
    text = screen.getvalue()
    assert "\r\x1b[K[1 left] one: compiling one 0s" in text
    assert text.endswith("\r\x1b[K"), "the live line is wiped at the end"
    stays = [piece for piece in text.split("\n") if "left" in piece]
    assert any(piece.endswith("one: built with Go in 0s, 1 left") for piece in stays)


def test_the_time_that_is_left_shrinks_with_what_is_done() -> None:
    screen = io.StringIO()
    with Progress(screen, live=False) as progress:
        progress.plan(["one", "two"], {"one": 600.0, "two": 300.0})
        progress.start("one", "built")
        progress.done("one", "built")
        progress.start("two", "built")
    lines = screen.getvalue().splitlines()
    assert lines[0] == "To make: 2, about 15 min to go (one, two)"
    assert lines[1] == "one: built (1 left after this, about 15 min to go)"
    assert lines[3] == "two: built (0 left after this, about 5 min to go)"


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59.9, 60, 3725)] == ["0s", "59s", "1m00s", "62m05s"]


def test_long_builds_give_signs_of_life_without_a_terminal() -> None:
    screen = io.StringIO()
    with Progress(screen, live=False, every=0.01) as progress:
        progress.start("slow", "compiling")
        while "so far" not in screen.getvalue():
            time.sleep(0.01)
    assert "slow: compiling, 0s so far" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()


def test_what_is_made_at_the_same_time_is_shown_side_by_side() -> None:
    screen = io.StringIO()
    with Progress(screen, live=True) as progress:
        progress.plan(["one", "two", "three"])
        progress.start("one", "compiling")
        progress.start("two", "installing")
        progress.detail("one", "linking")
        progress.done("two", "made")
    text = screen.getvalue()
    assert "[1 left] one: compiling 0s | two: installing 0s" in text
    assert "[1 left] one: linking 0s | two: installing 0s" in text
    assert "two: made in 0s, 2 left" in text


def test_those_who_make_things_at_once_share_one_line_and_one_count() -> None:
    screen = io.StringIO()
    progress = Progress(screen, live=False)
    with progress:
        progress.plan(["one", "two"], {"one": 60.0, "two": 60.0})
        progress.start("one", "built")
        with progress:
            progress.plan(["three"], {"three": 600.0})
            progress.start("three", "built")
            progress.done("three", "built")
        progress.done("one", "built")
    lines = screen.getvalue().splitlines()
    assert lines[2] == "To make: 1, about 12 min to go (three)"
    assert lines[3] == "three: built (1 left after this, about 12 min to go)"
    assert lines[4] == "three: built in 0s, 2 left"
    assert lines[5] == "one: built in 0s, 1 left"
