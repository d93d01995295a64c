"""The one error type whose text is meant for a person."""

from __future__ import annotations


class HcpError(Exception):
    """What went wrong in one sentence, why, and what to do about it.

    The command line prints it once, on stderr, without a traceback; reconcilers put the sentence and the
    hint into a condition.
    """

    def __init__(self, sentence: str, *, cause: str | None = None, hint: str | None = None, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.cause = cause
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.sentence if self.cause is None else f"{self.sentence}: {self.cause}"


def sentence(exc: Exception) -> str:
    """An error as a condition says it: what, why, and what to do."""
    hint = getattr(exc, "hint", None)
    return f"{exc}. {hint}" if hint else str(exc)
