"""A stand-in for a model server: the OpenAI wire format with answers that betray a wrong cache hit.

Runs as `python -m e2e.engine`, in the image `engine`, and in a test as `async with Engine(port=0) as engine`.
It computes nothing: a real engine takes its place wherever its URL is given. Standard library only.
"""

from .answers import answer_text, version_in
from .prefix_cache import PrefixCache
from .server import Engine

__all__ = ["Engine", "PrefixCache", "answer_text", "version_in"]
