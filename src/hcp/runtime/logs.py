"""Log lines as JSON, one per event: a sentence and the facts beside it, for machines to search."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from typing import Any, TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def facts(record: logging.LogRecord) -> dict[str, Any]:
    """The key/values given with `extra=`."""
    return {k: v for k, v in vars(record).items() if k not in _STANDARD and v is not None}


class JsonFormatter(logging.Formatter):
    """{"ts", "level", "logger", "msg", …facts, "trace"}"""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **facts(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """The same for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        pairs = " ".join(f"{k}={v}" for k, v in facts(record).items())
        line = f"{when} {record.levelname[:4].lower()} {record.getMessage()} {pairs}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def setup_logging(level: str = "info", *, form: str = "auto", stream: TextIO | None = None) -> None:
    """Send all logs to `stream` (stderr): `json`, `text`, or `auto` (text only on a terminal)."""
    out = stream or sys.stderr
    as_text = form == "text" or (form == "auto" and out.isatty())
    handler = logging.StreamHandler(out)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
