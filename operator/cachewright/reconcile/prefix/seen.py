"""What was seen of an engine's workload and pods. Pure; `observe` fills it, status reads it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachewright.reconcile.prefix.flush import FlushSeen
from cachewright.reconcile.prefix.hits import EngineHits
from cachewright.reconcile.workload import TERMINAL_PHASES

Pod = Mapping[str, Any]

ADDITIONAL_ARGS: Final = "VLLM_ADDITIONAL_ARGS"
"""Variable whose words KServe's presets of vLLM add to its command line."""


@dataclass(frozen=True, slots=True)
class PrefixSeen:
    """The engine's workload and its pods at one moment."""

    workload: Mapping[str, Any] | None = None
    """The Deployment or StatefulSet; None for other kinds, of which only the pods are looked at."""
    pods: tuple[Pod, ...] = ()
    """Pods that are not over."""
    problem: str = ""
    """Why they could not be looked at, as the end of a sentence."""
    is_proven: bool | None = None
    """Whether the policy edited a pod that was made to see; None where nobody asked."""
    proof_error: str = ""
    """Why that pod was refused."""
    rival: str = ""
    """The InferenceCache whose settings the pod template names, where it is another one."""
    flush: FlushSeen | None = None
    """How far emptying its pods' prefix caches has come; None where nobody is to."""
    hits: EngineHits | None = None
    """What its pods told of their prefix caches; None where they were not asked."""


def living(pods: list[dict[str, Any]]) -> tuple[Pod, ...]:
    """Leave out pods that are over."""
    return tuple(pod for pod in pods if (pod.get("status") or {}).get("phase") not in TERMINAL_PHASES)


def engine_container(containers: list[Mapping[str, Any]], name: str | None) -> Mapping[str, Any] | None:
    """Find the engine's container: by name, or the only one there is."""
    if name is None:
        return containers[0] if len(containers) == 1 else None
    return next((each for each in containers if each.get("name") == name), None)


def words_of(container: Mapping[str, Any]) -> list[str]:
    """Return the whole command line, as far as the pod says it."""
    return [*(container.get("command") or []), *(container.get("args") or []), *additional_args(container)]


def additional_args(container: Mapping[str, Any]) -> list[str]:
    """Return the words that KServe's presets add to the command line from a variable."""
    for variable in container.get("env") or []:
        if variable.get("name") == ADDITIONAL_ARGS:
            try:
                return shlex.split(str(variable.get("value", "")))
            except ValueError:
                return [str(variable["value"])]
    return []


def mounted_config_maps(pod: Pod, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name of a ConfigMap, path where the container sees it)."""
    volumes: dict[str, list[str]] = {}
    for volume in pod["spec"].get("volumes") or []:
        sources = [volume, *((volume.get("projected") or {}).get("sources") or [])]
        names = [str(s["configMap"].get("name", "")) for s in sources if s.get("configMap")]
        volumes[str(volume["name"])] = names
    for each in container.get("volumeMounts") or []:
        for name in volumes.get(str(each["name"]), []):
            yield name, str(each["mountPath"]).rstrip("/")
