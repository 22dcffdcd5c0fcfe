"""ConfigMaps that stand in the same files as an InferenceCache: from objects to their texts.

Called by `cli.local` and `cli.explain`, for prompt templates that a ConfigMap holds.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any

from cachewright.errors import InvalidDocument

Texts = dict[tuple[str, str], str]
"""By ConfigMap name and key, as the API server would hand them out: `binaryData` as base64."""


def config_map_texts(found: Iterable[tuple[str, Any]]) -> Texts:
    """Read the ConfigMaps among objects (file, object); raises InvalidDocument for a broken one."""
    return dict(_texts(found))


def _texts(found: Iterable[tuple[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    for file, value in found:
        if not isinstance(value, dict) or (value.get("apiVersion"), value.get("kind")) != ("v1", "ConfigMap"):
            continue
        try:
            name = str(value["metadata"]["name"])
            for key, text in (value.get("binaryData") or {}).items():
                base64.b64decode(text, validate=True)
                yield (name, str(key)), text
            for key, text in (value.get("data") or {}).items():
                yield (name, str(key)), str(text)
        except (KeyError, AttributeError, TypeError, binascii.Error):
            raise InvalidDocument(f"{file}: a ConfigMap does not parse") from None
