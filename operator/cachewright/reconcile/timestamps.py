"""Moments as the Kubernetes API writes them: RFC 3339, UTC, whole seconds. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def to_timestamp(moment: datetime) -> str:
    """Render a moment; it must carry a time zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
