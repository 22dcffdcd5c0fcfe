"""Collections in a folder: one shard of the engine each, found again after a restart, and their aliases.

Called by `server`, from several threads; a lock guards the list, and the engine guards each shard.
"""

import json
import shutil
import threading
from pathlib import Path
from typing import Any, Final

import qdrant_edge as edge

from e2e.qdrant import wire
from e2e.qdrant.wire import Json, WireError

REQUEST_FILE: Final = "collection.json"
"""The body that created the collection; a folder without it was not finished."""


class NotFoundError(LookupError):
    """There is no such collection: 404."""


class ConflictError(ValueError):
    """There is such a collection or alias already: 409."""


class Collection:
    """One collection."""

    def __init__(self, name: str, request: Json, shard: edge.EdgeShard) -> None:
        self.name, self.request, self.shard = name, request, shard
        self.operations = 0

    def info(self) -> Json:
        """Describe it as `GET /collections/{name}` does."""
        found = self.shard.info()
        schema = {
            field: {"data_type": str(index.data_type).rpartition(".")[2].lower(), "points": index.points}
            for field, index in found.payload_schema.items()
        }
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": wire.FULL_SCAN_THRESHOLD_KB}
        config = {
            "params": {"vectors": self.request["vectors"]},
            "hnsw_config": hnsw | wire.without_nulls(self.request.get("hnsw_config") or {}),
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
            "quantization_config": self.request.get("quantization_config"),
        }
        return {
            "status": "green",
            "optimizer_status": "ok",
            "points_count": found.points_count,
            "indexed_vectors_count": found.indexed_vectors_count,
            "segments_count": found.segments_count,
            "config": config,
            "payload_schema": schema,
        }

    def index_field(self, body: Json) -> Json:
        """Index a payload field."""
        return self._update(edge.UpdateOperation.create_field_index(body["field_name"], wire.schema_of(body)))

    def upsert(self, body: Json) -> Json:
        """Store points in the place of those with the same ids."""
        return self._update(edge.UpdateOperation.upsert_points(wire.points_of(body)))

    def delete(self, body: Json) -> Json:
        """Delete points by their ids or by a filter."""
        if "points" in body:
            return self._update(edge.UpdateOperation.delete_points(body["points"]))
        matching = wire.filter_of(body.get("filter"))
        if matching is None:
            raise WireError("Format error in JSON body: neither points nor filter")
        return self._update(edge.UpdateOperation.delete_points_by_filter(matching))

    def retrieve(self, body: Json) -> list[Json]:
        """Return points by their ids, those that are there."""
        found = self.shard.retrieve(
            body["ids"], body.get("with_payload", True), body.get("with_vector", False)
        )
        return [wire.record_json(record) for record in found]

    def query(self, body: Json) -> Json:
        """Search for the nearest points."""
        return {"points": [wire.record_json(point) for point in self.shard.query(wire.query_of(body))]}

    def scroll(self, body: Json) -> Json:
        """Walk through points."""
        return wire.page_json(*self.shard.scroll(wire.scroll_of(body)))

    def count(self, body: Json) -> Json:
        """Count points."""
        matching = wire.filter_of(body.get("filter"))
        return {"count": self.shard.count(edge.CountRequest(exact=body.get("exact", True), filter=matching))}

    def optimize(self) -> bool:
        """Build the graphs that are missing; a real server does so behind its clients' backs."""
        return self.shard.optimize()

    def _update(self, operation: edge.UpdateOperation) -> Json:
        self.shard.update(operation)
        self.operations += 1
        return {"operation_id": self.operations, "status": "completed"}


class Collections:
    """All collections under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._by_name: dict[str, Collection] = {}
        self._aliases: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.iterdir()):
            self._load(path)

    def names(self) -> list[str]:
        """List collections."""
        return sorted(self._by_name)

    def get(self, name: str) -> Collection:
        """Find a collection by its name or an alias."""
        found = self._by_name.get(self._aliases.get(name, name))
        if found is None:
            raise NotFoundError(f"Not found: Collection `{name}` doesn't exist!")
        return found

    def create(self, name: str, body: Json) -> None:
        """Make a collection."""
        config = wire.config_of(wire.without_nulls(body))
        with self._lock:
            if name in self._by_name or name in self._aliases:
                raise ConflictError(f"Wrong input: Collection `{name}` already exists!")
            path = self._folder / name
            path.mkdir()
            shard = edge.EdgeShard.create(str(path / "shard"), config)
            (path / REQUEST_FILE).write_text(json.dumps(body))
            self._by_name[name] = Collection(name, body, shard)

    def delete(self, name: str) -> bool:
        """Remove a collection, and tell whether there was one."""
        with self._lock:
            found = self._by_name.pop(name, None)
            if found is None:
                return False
            (self._folder / name / REQUEST_FILE).unlink()
            found.shard.close()
            shutil.rmtree(self._folder / name)
            self._aliases = {alias: of for alias, of in self._aliases.items() if of != name}
        return True

    def aliases(self, name: str | None = None) -> Json:
        """List aliases, of all collections or of one."""
        return {
            "aliases": [
                {"alias_name": alias, "collection_name": of}
                for alias, of in sorted(self._aliases.items())
                if name in {None, of}
            ]
        }

    def change_aliases(self, body: Json) -> None:
        """Carry out all actions, or none."""
        with self._lock:
            changed = dict(self._aliases)
            for action in body["actions"]:
                self._change_alias(changed, action)
            self._aliases = changed

    def close(self) -> None:
        """Write everything out."""
        for collection in self._by_name.values():
            collection.shard.close()

    def _change_alias(self, aliases: dict[str, str], action: dict[str, Any]) -> None:
        ((kind, said),) = action.items()
        if kind == "create_alias":
            if said["collection_name"] not in self._by_name:
                raise NotFoundError(f"Not found: Collection `{said['collection_name']}` doesn't exist!")
            aliases[said["alias_name"]] = said["collection_name"]
        elif kind == "delete_alias":
            aliases.pop(said["alias_name"], None)
        elif kind == "rename_alias" and said["old_alias_name"] in aliases:
            aliases[said["new_alias_name"]] = aliases.pop(said["old_alias_name"])
        else:
            raise NotFoundError("Not found: Alias doesn't exist!")

    def _load(self, path: Path) -> None:
        if not (path / REQUEST_FILE).is_file():
            shutil.rmtree(path)
            return
        request = json.loads((path / REQUEST_FILE).read_text())
        self._by_name[path.name] = Collection(path.name, request, edge.EdgeShard.load(str(path / "shard")))
