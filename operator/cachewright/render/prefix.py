"""What an engine reads: the file of its settings, and the lines by which a pod template names that file."""

from __future__ import annotations

from typing import Final

import yaml

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS, ANNOTATION_PREFIX_SINCE
from cachewright.engines.tensorrt_llm import FILE_PATH
from cachewright.render.metadata import Manifest, child_metadata, prefix_name

FILE_KEY: Final = "engine.yaml"
"""Key of the file, and its name where it is mounted."""

LINES_KEY: Final = "add-to-pod-template.yaml"

VOLUME: Final = "cachewright-prefix"

FILE_DIR: Final = FILE_PATH.removesuffix(f"/{FILE_KEY}")


def build_prefix_file_config_map(
    cache: InferenceCache, file: str, words: tuple[str, str], digest: str, since: str
) -> Manifest:
    """Render the file; `digest` names the settings in it, and `since` says when they came."""
    metadata = child_metadata(cache, prefix_name(cache.metadata.name), "prefix")
    annotations = {ANNOTATION_PREFIX_SETTINGS: digest, ANNOTATION_PREFIX_SINCE: since}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": annotations},
        "data": {FILE_KEY: file, LINES_KEY: pod_template_lines(metadata["name"], words)},
    }


def pod_template_lines(config_map: str, words: tuple[str, str]) -> str:
    """Write what a user adds to the engine's pod template."""
    container = {
        "args": list(words),
        "volumeMounts": [{"name": VOLUME, "mountPath": FILE_DIR, "readOnly": True}],
    }
    volume = {"name": VOLUME, "configMap": {"name": config_map, "optional": True}}
    lines = yaml.safe_dump({"containers": [container], "volumes": [volume]}, sort_keys=False)
    return f"# To be merged into the pod template's spec; args are added to those that are there.\n{lines}"
