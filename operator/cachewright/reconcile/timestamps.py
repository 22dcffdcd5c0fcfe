"""Moments as the Kubernetes API writes them: RFC 3339, UTC, whole seconds. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0)


def to_timestamp(moment: datetime) -> str:
    """Render a moment; it must carry a time zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_timestamp(text: str) -> datetime | None:
    """Read a moment; None for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def after(moment: datetime, seconds: float) -> datetime:
    """Return the moment so much later, or the last one there is."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST
