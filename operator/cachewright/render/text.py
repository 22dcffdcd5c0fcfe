"""Text files from jinja2 templates; manifests themselves are built as dicts."""

from __future__ import annotations

from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

_ENVIRONMENT: Final = Environment(
    loader=PackageLoader("cachewright.render", "templates"),
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 - configuration files, never HTML
    keep_trailing_newline=True,
)


def render_text(template: str, **values: str | int) -> str:
    """Fill a template; a value that is missing is an error."""
    return _ENVIRONMENT.get_template(template).render(values)
