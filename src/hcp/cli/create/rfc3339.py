"""RFC 3339 dates, as strictly as the API reads them."""

from __future__ import annotations

from datetime import datetime


def is_date(text: str) -> bool:
    """2030-01-31T12:00:00Z, with fractions of seconds and a zone as +01:00 if wanted."""
    if len(text) < 20 or text[10] != "T" or not text.isascii():
        return False
    zone = "Z" if text.endswith("Z") else text[-6:]
    if zone != "Z" and (zone[0] not in "+-" or zone[3] != ":"):
        return False
    clock, dot, fraction = text[: -len(zone)].partition(".")
    if len(clock) != 19 or (dot and not fraction.isdigit()):
        return False
    try:
        datetime.strptime(clock, "%Y-%m-%dT%H:%M:%S")
        return zone == "Z" or (int(zone[1:3]) < 24 and int(zone[4:6]) < 60)
    except ValueError:
        return False
