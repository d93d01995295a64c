"""How long tests wait for a command."""

import pytest
from tests.support.e2e.local_tools import patience


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (("get", "clusters"), 1500),
        (("wait", "cluster", "one", "--timeout", "10m"), 1500),
        (("wait", "cluster", "one", "--timeout", "40m", "--kubeconfig", "x"), 2700),
        (("wait", "cluster", "one", "--timeout", "1h"), 3900),
    ],
)
def test_a_command_that_gives_up_by_itself_gets_the_time_to_say_why(words: tuple[str, ...], seconds: float) -> None:
    assert patience(words) == seconds
