"""Where a workload keeps its engine's words: in a pod template, or in fields of a stack's own kind. Pure.

`patched_workload` reads and writes by it. What a stack keeps is shown as a pod template with one container,
so that all that decides on words needs to know one shape only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final, Protocol

import orjson

from cachewright.reconcile.prefix.seen import ADDITIONAL_ARGS, additional_args
from cachewright.render.metadata import Manifest

Workload = Mapping[str, Any]
Words = Mapping[str, list[str]]
"""`command` and `args`, those of the two that are meant."""

SWITCH: Final = "--enable-prefix-caching"
SWITCHED_OFF: Final = "--no-enable-prefix-caching"

GPU_SHARE: Final = "--gpu-memory-utilization="
TYPED: Final = frozenset({SWITCH, SWITCHED_OFF})
RUNTIME_FIELDS: Final = frozenset({"f:enablePrefixCaching", "f:gpuMemoryUtilization", "f:extraArgs"})


class WordPlace(Protocol):
    """One kind's way of keeping words."""

    def template(self, workload: Workload) -> Mapping[str, Any]:
        """Show the words as a pod template, with the annotations that are kept beside them."""

    def order(self, args: list[str]) -> list[str]:
        """Return arguments in the order in which they will be read back."""

    def refusal(self, workload: Workload) -> str:
        """Say why words cannot be set here, as the rest of a sentence; empty where they can."""

    def manifest(self, container: str, words: Words, annotations: Mapping[str, str]) -> Manifest:
        """Return the part of a manifest that sets words and annotations, and nothing where there are none."""

    def owned(self, entry: Mapping[str, Any], container: str) -> set[str]:
        """Tell which of `command` and `args` an entry of `managedFields` owns."""

    def hand_over(self, entry: Mapping[str, Any], container: str, kinds: set[str]) -> None:
        """Let an entry that has what is around these own them too."""


class PodTemplates:
    """Deployments and StatefulSets."""

    def template(self, workload: Workload) -> Mapping[str, Any]:
        """Return the pod template."""
        template: Mapping[str, Any] = workload["spec"]["template"]
        return template

    def order(self, args: list[str]) -> list[str]:
        """Leave them as they are."""
        return args

    def refusal(self, workload: Workload) -> str:
        """Every pod template can be written to."""
        del workload
        return ""

    def manifest(self, container: str, words: Words, annotations: Mapping[str, str]) -> Manifest:
        """Set them in the pod template, so that pods carry the annotations too."""
        template: Manifest = {"spec": {"containers": [{"name": container, **words}]}}
        if annotations:
            template["metadata"] = {"annotations": dict(annotations)}
        return {"spec": {"template": template}}

    def owned(self, entry: Mapping[str, Any], container: str) -> set[str]:
        """Look at the container's lists."""
        fields = self._fields(entry, container)
        return {kind for kind in ("command", "args") if f"f:{kind}" in fields}

    def hand_over(self, entry: Mapping[str, Any], container: str, kinds: set[str]) -> None:
        """Add the lists to whoever has the container's image."""
        fields = self._fields(entry, container)
        if "f:image" in fields:
            fields.update({f"f:{kind}": {} for kind in kinds})

    def _fields(self, entry: Mapping[str, Any], container: str) -> dict[str, Any]:
        return _below(entry, "f:spec", "f:template", "f:spec", "f:containers", _key(container))


class Runtimes:
    """`VLLMRuntime` of vLLM's production stack: typed fields, and `extraArgs` that its operator adds."""

    def template(self, workload: Workload) -> Mapping[str, Any]:
        """Show the typed fields as the arguments that the stack's operator makes of them."""
        config = workload["spec"].get("vllmConfig") or {}
        args = [SWITCH if config.get("enablePrefixCaching") else SWITCHED_OFF]
        if share := config.get("gpuMemoryUtilization"):
            args.append(f"{GPU_SHARE}{share}")
        return _shown(workload, "vllm", [*args, *(config.get("extraArgs") or [])])

    def order(self, args: list[str]) -> list[str]:
        """Put what has a field of its own first."""
        switch = SWITCH if SWITCH in args else SWITCHED_OFF
        shares = [word for word in args if word.startswith(GPU_SHARE)][-1:]
        rest = [word for word in args if word not in TYPED and not word.startswith(GPU_SHARE)]
        return [switch, *shares, *rest]

    def refusal(self, workload: Workload) -> str:
        """Every object of this kind can be written to."""
        del workload
        return ""

    def manifest(self, container: str, words: Words, annotations: Mapping[str, str]) -> Manifest:
        """Set the fields that differ from what they are when left out."""
        del container
        switch, *rest = words.get("args") or [SWITCHED_OFF]
        config: Manifest = {"enablePrefixCaching": True} if switch == SWITCH else {}
        if rest and rest[0].startswith(GPU_SHARE):
            config["gpuMemoryUtilization"] = rest.pop(0).removeprefix(GPU_SHARE)
        if rest:
            config["extraArgs"] = rest
        return _annotated({"spec": {"vllmConfig": config}} if config else {}, annotations)

    def owned(self, entry: Mapping[str, Any], container: str) -> set[str]:
        """Any of the fields is part of the arguments."""
        del container
        return {"args"} if RUNTIME_FIELDS & _below(entry, "f:spec", "f:vllmConfig").keys() else set()

    def hand_over(self, entry: Mapping[str, Any], container: str, kinds: set[str]) -> None:
        """Add the fields to whoever has others of vLLM's settings."""
        del container
        fields = _below(entry, "f:spec", "f:vllmConfig")
        if kinds and fields:
            fields.update({field: {} for field in RUNTIME_FIELDS})


class Services:
    """`LLMInferenceService` of KServe: a variable of the container `main`, whose words its presets add."""

    def template(self, workload: Workload) -> Mapping[str, Any]:
        """Show the variable's words as arguments; the command is the preset's."""
        containers = (workload["spec"].get("template") or {}).get("containers") or []
        container: Workload = next((each for each in containers if each.get("name") == "main"), {})
        return _shown(workload, "main", additional_args(container))

    def order(self, args: list[str]) -> list[str]:
        """Leave them as they are."""
        return args

    def refusal(self, workload: Workload) -> str:
        """Older definitions take the list of containers as a whole, so ours would replace the user's."""
        for entry in workload["metadata"].get("managedFields") or []:
            template = _below(entry, "f:spec", "f:template")
            if template.get("f:containers") == {}:
                return f"cannot be added to; write the words into {ADDITIONAL_ARGS} yourself"
        return ""

    def manifest(self, container: str, words: Words, annotations: Mapping[str, str]) -> Manifest:
        """Set the variable."""
        args = words.get("args")
        env = [{"name": ADDITIONAL_ARGS, "value": shlex.join(args or [])}]
        spec: Manifest = {"template": {"containers": [{"name": container, "env": env}]}}
        return _annotated({"spec": spec} if args else {}, annotations)

    def owned(self, entry: Mapping[str, Any], container: str) -> set[str]:
        """Look at the variable."""
        variables = self._fields(entry, container).get("f:env") or {}
        return {"args"} if "f:value" in (variables.get(_key(ADDITIONAL_ARGS)) or {}) else set()

    def hand_over(self, entry: Mapping[str, Any], container: str, kinds: set[str]) -> None:
        """Add the variable to whoever has others of the container."""
        variables = self._fields(entry, container).get("f:env")
        if kinds and variables:
            variables[_key(ADDITIONAL_ARGS)] = {".": {}, "f:name": {}, "f:value": {}}

    def _fields(self, entry: Mapping[str, Any], container: str) -> dict[str, Any]:
        return _below(entry, "f:spec", "f:template", "f:containers", _key(container))


_POD_TEMPLATES: Final = PodTemplates()

PLACES: Final[Mapping[str, WordPlace]] = {
    "Deployment": _POD_TEMPLATES,
    "StatefulSet": _POD_TEMPLATES,
    "VLLMRuntime": Runtimes(),
    "LLMInferenceService": Services(),
}
"""By kind."""


def place_of(workload: Workload) -> WordPlace:
    """Return how this workload's kind keeps words."""
    return PLACES.get(str(workload.get("kind")), _POD_TEMPLATES)


def _shown(workload: Workload, container: str, args: list[str]) -> Mapping[str, Any]:
    annotations = workload["metadata"].get("annotations") or {}
    shown = {"name": container, "command": ["vllm", "serve"], "args": args}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [shown]}}


def _annotated(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    return {**manifest, "metadata": {"annotations": dict(annotations)}} if annotations else manifest


def _key(name: str) -> str:
    """Name an item of a list by key, as `managedFields` does."""
    return "k:" + orjson.dumps({"name": name}).decode()


def _below(entry: Mapping[str, Any], *path: str) -> dict[str, Any]:
    found: Any = entry.get("fieldsV1") or {}
    for step in path:
        found = found.get(step) or {}
    fields: dict[str, Any] = found
    return fields
