"""The stand-in Qdrant reads the configuration that we render for the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachewright.api.names import QDRANT_PORT
from cachewright.crd.validation import load
from cachewright.render.qdrant import build_qdrant_config_map
from e2e.qdrant.configuration import ConfigurationError, read_configuration
from tests.support.caches import cache_document


def test_the_rendered_configuration_is_understood(tmp_path: Path) -> None:
    """Where it listens and keeps things is the file's, the key and the init file are the environment's."""
    file = tmp_path / "qdrant.yaml"
    file.write_text(build_qdrant_config_map(load(cache_document()))["data"]["qdrant.yaml"])
    environment = {"QDRANT__SERVICE__API_KEY": "a key", "QDRANT_INIT_FILE_PATH": "/qdrant/snapshots/done"}
    read = read_configuration(file, environment)
    assert (read.host, read.port, read.folder) == ("0.0.0.0", QDRANT_PORT, Path("/qdrant/storage"))
    assert (read.api_key, read.init_file) == ("a key", Path("/qdrant/snapshots/done"))


@pytest.mark.parametrize(
    ("text", "named"),
    [("service: {enable_tls: true}", "enable_tls"), ("cluster: {enabled: true}", "one peer")],
)
def test_what_a_real_server_would_obey_is_refused(tmp_path: Path, text: str, named: str) -> None:
    """A setting that is passed over would let a test pass that a real server fails."""
    file = tmp_path / "qdrant.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=named):
        read_configuration(file, {})
