from __future__ import annotations

from hcp.hostedcluster.start_queue import PATIENCE, StartQueue, limit


class Line:
    """A line of clusters, a clock that stands still, and who was woken."""

    def __init__(self) -> None:
        self.now = 0.0
        self.woken: list[str] = []
        self.turns = StartQueue(self.woken.append, clock=lambda: self.now)

    def ahead(self, *keys: str) -> list[int]:
        return [self.turns.ahead(key, 2) for key in keys]


def test_a_few_start_and_the_others_wait() -> None:
    line = Line()
    assert line.ahead("a", "b", "c", "d") == [0, 0, 2, 2]
    assert line.ahead("a", "b") == [0, 0], "who has begun goes on"


def test_the_first_in_line_is_next() -> None:
    line = Line()
    line.ahead("a", "b", "c", "d")
    line.turns.done("a")
    assert line.woken == ["c"], "whose turn it is, not everybody who waits"
    assert line.ahead("d", "c", "d") == [2 - 1, 0, 2]


def test_one_in_trouble_does_not_hold_up_the_rest() -> None:
    line = Line()
    line.ahead("a", "b", "c")
    line.now = PATIENCE
    assert line.ahead("c") == [0]


def test_one_that_goes_while_it_waits_leaves_the_line() -> None:
    line = Line()
    line.ahead("a", "b", "c", "d")
    line.turns.done("c")
    assert line.woken == []
    line.turns.done("a")
    assert line.ahead("d") == [0]


def test_processors_say_how_many() -> None:
    node = {"status": {"allocatable": {"cpu": "1500m"}}}
    assert limit([node]) == 4
    assert limit([node] * 10) == 30
    assert limit([]) > 1000


def test_a_team_with_many_clusters_does_not_hold_up_another() -> None:
    line = StartQueue(lambda key: None)
    for number in range(100):
        line.ahead(f"greedy/{number}", 2)
    assert line.ahead("modest/one", 2) == 2
    line.done("greedy/0")
    assert line.ahead("greedy/50", 2) > 0
    assert line.ahead("modest/one", 2) == 0
