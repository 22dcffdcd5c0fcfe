"""A stand-in for a Qdrant server: the part of its REST API that we use, over Qdrant's own engine.

Runs as `python -m e2e.qdrant` and in the image `qdrant`. Storage, search, filters and indexes are those of
`qdrant-edge-py`; routes, collections, aliases, keys and errors are written here after the real server's,
which takes its place wherever its URL is given. One process, no snapshots, no gRPC; what it does not know it
refuses.
"""

from e2e.qdrant.server import QdrantStandIn

__all__ = ["QdrantStandIn"]
