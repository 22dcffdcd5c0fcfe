"""What the engine's pods run: from pods as the API server gives them to identities. Pure.

An identity is the annotation `cachewright.dev/model-version` on the pod where there is one, else a digest of
image, command, arguments and environment. `observe` builds a `WorkloadSeen` in each pass; `rotation` allows
writes by it, and takes a new identity for evidence that a new version is served.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cachewright.api.names import (
    ANNOTATION_MODEL_VERSION,
    ANNOTATION_PREFIX_ORIGINAL,
    ANNOTATION_PREFIX_PATCHED,
)
from cachewright.keys.fields import encode_fields

Pod = Mapping[str, Any]

IDENTITY_LENGTH: Final = 16
"""Hex digits of an identity."""

TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
"""A pod in one of these has no running container, and never will again."""

INJECTED_PREFIXES: Final = ("CACHEWRIGHT_", "LWS_")
"""Begin the names of variables that differ between pods of one template: ours, and LeaderWorkerSet's."""

_ESCAPED: Final = re.compile(r"\\[\\n]")


@dataclass(frozen=True, slots=True)
class WorkloadSeen:
    """The pods of a workload at one moment, those that start or end included."""

    pods: Mapping[str, int] = field(default_factory=dict)
    """How many pods carry each identity."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """What the annotation says, by identity, where it is what the identity comes from."""
    problem: str = ""
    """Why pods could not be looked for, as a sentence; empty where they could."""

    @property
    def uniform(self) -> str:
        """The identity that every pod carries; empty where they differ, or where there are none."""
        return next(iter(self.pods)) if len(self.pods) == 1 else ""


def see_pods(pods: Iterable[Pod], container: str | None) -> WorkloadSeen:
    """Count identities over all pods that are not over; `container` alone counts where it is given."""
    counts: dict[str, int] = {}
    versions: dict[str, str] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
            continue
        annotated = annotated_version(pod)
        identity = identity_of_version(annotated) if annotated else identity_of_template(pod, container)
        counts[identity] = counts.get(identity, 0) + 1
        if annotated:
            versions[identity] = annotated
    return WorkloadSeen(counts, versions)


def annotated_version(pod: Pod) -> str:
    """Return the version that a pod says it serves; empty where it says none."""
    annotations = pod.get("metadata", {}).get("annotations") or {}
    return str(annotations.get(ANNOTATION_MODEL_VERSION, "")).strip()


def identity_of_version(version: str) -> str:
    """Return the identity of pods that are annotated with this version."""
    return _digest("annotation", version.encode("utf-8", "surrogatepass"))


def identity_of_template(pod: Pod, container: str | None) -> str:
    """Digest what a pod runs: its containers, those that initialise it included.

    Resources, mounts, probes, and whatever else leaves answers alone, stay out of it.
    """
    spec = pod.get("spec") or {}
    original = original_words(pod)
    parts = [
        _runs(each, original)
        for kind in ("initContainers", "containers")
        for each in spec.get(kind) or []
        if container is None or each.get("name") == container
    ]
    parts.sort(key=lambda part: str(part["name"]))
    return _digest("template", orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))


@dataclass(frozen=True, slots=True)
class OriginalWords:
    """The command line of an engine as its user wrote it."""

    container: str
    command: list[str]
    args: list[str]
    is_changed: bool = False
    """True where somebody has written a list anew since; that one is as it was written then."""


def words_digest(command: Sequence[str], args: Sequence[str]) -> str:
    """Digest a command line, for short."""
    words = [("length", str(len(command)).encode())]
    words += [("word", word.encode("utf-8", "surrogatepass")) for word in (*command, *args)]
    return hashlib.sha256(encode_fields("cachewright/words", words)).hexdigest()[:IDENTITY_LENGTH]


def given_digests(command: Sequence[str], args: Sequence[str]) -> str:
    """Digest the two lists of a command line, each for itself."""
    return f"{words_digest(command, ())} {words_digest((), args)}"


def original_text(original: OriginalWords) -> str:
    """Write what was there as it is put aside; ends of line within a word are escaped."""
    words = [word.replace("\\", "\\\\").replace("\n", "\\n") for word in (*original.command, *original.args)]
    return "\n".join([original.container, str(len(original.command)), *words])


def original_words(pod: Pod) -> OriginalWords | None:
    """Read what was put aside when a pod was edited, or the template that it was made from.

    None where nothing was, or it cannot be read. What was put aside belongs to the words that were given: a
    list that is another one by now is its user's.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    if ANNOTATION_PREFIX_PATCHED not in annotations:
        return _read(str(annotations.get(ANNOTATION_PREFIX_ORIGINAL, "")))
    given, _, text = str(annotations[ANNOTATION_PREFIX_PATCHED]).partition("\n")
    found = _read(text)
    containers = (pod.get("spec") or {}).get("containers") or []
    now = next((each for each in containers if found and each.get("name") == found.container), None)
    if found is None or now is None:
        return None
    command, args = list(now.get("command") or []), list(now.get("args") or [])
    for_command, _, for_args = given.partition(" ")
    same = (words_digest(command, ()) == for_command, words_digest((), args) == for_args)
    before = (found.command if same[0] else command, found.args if same[1] else args)
    return OriginalWords(found.container, *before, is_changed=not all(same))


def _read(text: str) -> OriginalWords | None:
    """Read one word a line: the container, the length of its command, then its command and args."""
    container, *rest = text.split("\n")
    if not rest or not rest[0].isdecimal():
        return None
    length = int(rest[0])
    words = [_ESCAPED.sub(lambda found: "\n" if found[0] == "\\n" else "\\", word) for word in rest[1:]]
    return OriginalWords(container, words[:length], words[length:])


def _runs(container: Mapping[str, Any], original: OriginalWords | None) -> dict[str, Any]:
    name = container.get("name", "")
    edited = original is not None and original.container == name
    environment = [
        variable
        for variable in container.get("env") or []
        if not str(variable.get("name", "")).startswith(INJECTED_PREFIXES)
    ]
    return {
        "name": name,
        "image": container.get("image", ""),
        "command": original.command if original and edited else container.get("command") or [],
        "args": original.args if original and edited else container.get("args") or [],
        "env": environment,
        "envFrom": container.get("envFrom") or [],
    }


def _digest(kind: str, content: bytes) -> str:
    fields = encode_fields("cachewright/workload", [("kind", kind.encode()), ("content", content)])
    return hashlib.sha256(fields).hexdigest()[:IDENTITY_LENGTH]
