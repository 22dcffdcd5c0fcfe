"""The demo's third chapter: questions that are nearly the same, vectors, and what a new model leaves of both.

Called by `demo` with the stand-in engine running; tells it with examples/semantic.yaml.
"""

from __future__ import annotations

import json
import time
from array import array
from typing import Final

from e2e.client import Answer, ChatClient
from e2e.cluster.console import Step
from e2e.installation import ROOT, Installation
from e2e.kubectl import Kubectl, wait_for
from e2e.similarity import EMBEDDER, OTHER_NUMBER, PARAPHRASE, QUESTION, kept, wait_until_kept
from e2e.story import Story

NAME: Final = "similar"
SETTLE_SECONDS: Final = 240.0
PODS: Final = f"cachewright.dev/cache={NAME},app.kubernetes.io/component=gateway"
TEXTS: Final = ("a first text to be embedded", "and a second one")


def tell_semantic(story: Story, installation: Installation) -> None:
    """Ask nearly the same, embed, change the model's version, and change it back."""
    kubectl = installation.kubectl
    story.title("kubectl apply -f examples/qdrant.yaml -f examples/semantic.yaml")
    kubectl.apply(installation.qdrant_manifest())
    kubectl.apply((ROOT / "examples" / "semantic.yaml").read_text())
    with Step("waiting until it is Ready: a gateway has tried every layer and the embedder"):
        wait_for("Ready", lambda: _is_ready(kubectl), SETTLE_SECONDS)
    pod = _gateway_pod(kubectl)
    # Answers are kept once their clients have them, which the pod itself tells.
    with kubectl.forward(pod, 8080) as port, kubectl.forward(pod, 9090) as management:
        client = ChatClient(port)
        # A tenant of its own for each run, so that running the demo again tells the same story.
        tenant = f"acme-{time.time():.0f}"
        tell_questions(story, client, ChatClient(management), tenant)
        tell_vectors(story, client, tenant)
        tell_bump(story, kubectl, client, tenant)


def tell_questions(story: Story, client: ChatClient, management: ChatClient, tenant: str) -> None:
    """Ask a question, the same in other words, and another one that looks much like it."""
    before = kept(management)
    first = client.chat(QUESTION, tenant=tenant)
    story.answer("“What is the speed limit in zone 3 of the city?” MISS", first, holds=not first.is_hit)
    wait_until_kept(management, before)
    same = client.chat(PARAPHRASE, tenant=tenant)
    by_similarity = same.is_hit and same.detail == "semantic" and same.body == first.body
    story.answer("“What's the speed limit in zone 3 of the city?” HIT", same, holds=by_similarity)
    story.tell("how similar the two are (cosine)", seen=_similarity(same), holds=bool(_similarity(same)))
    other = client.chat(OTHER_NUMBER, tenant=tenant)
    guarded = not other.is_hit and other.detail == "guard"
    story.answer("“What is the speed limit in zone 4 of the city?” MISS", other, holds=guarded)
    found = other.headers.get("cachewright-guard", "")
    why = f"{_similarity(other)}, yet the guard found other {found}"
    story.tell("similar enough for a threshold, and why it is no hit", seen=why, holds=found == "numbers")
    stranger = client.chat(PARAPHRASE, tenant=f"globex-{tenant}")
    story.answer("the same in other words, of another tenant: MISS", stranger, holds=not stranger.is_hit)


def tell_vectors(story: Story, client: ChatClient, tenant: str) -> None:
    """Embed two texts twice."""
    story.title("The same embedder for the application: /v1/embeddings")
    first = client.embed(*TEXTS, model=EMBEDDER, tenant=tenant)
    story.answer("two texts: MISS", first, holds=not first.is_hit)
    second = wait_for("vectors kept", lambda: _hit(client, tenant), SETTLE_SECONDS)
    story.answer("again: HIT, with the same vectors", second, holds=_vectors(second) == _vectors(first))


def tell_bump(story: Story, kubectl: Kubectl, client: ChatClient, tenant: str) -> None:
    """Raise the model's version: answers go, vectors stay; and set it back."""
    story.title("spec.model.version: 2")
    first = _keyspaces(kubectl)
    _bump(kubectl, "2")
    wait_for("the switch", lambda: _keyspaces(kubectl)["Semantic"] != first["Semantic"], SETTLE_SECONDS)
    after = _keyspaces(kubectl)
    stays = [layer for layer in after if after[layer] == first[layer]]
    story.tell("layers that keep their entries", seen=", ".join(stays), holds=stays == ["Embedding"])
    again = client.chat(PARAPHRASE, tenant=tenant)
    story.answer("the question is asked anew: MISS", again, holds=not again.is_hit)
    vectors = client.embed(*TEXTS, model=EMBEDDER, tenant=tenant)
    story.answer("the vectors are those of before: HIT", vectors, holds=vectors.is_hit)
    _bump(kubectl, "1")
    wait_for("the way back", lambda: _keyspaces(kubectl) == first, SETTLE_SECONDS)
    back = client.chat(QUESTION, tenant=tenant)
    story.answer("version 1 again, within 24 h: HIT", back, holds=back.is_hit)


def _is_ready(kubectl: Kubectl) -> bool:
    cache = kubectl.get("icache", NAME)
    return any(
        each["type"] == "Ready"
        and each["status"] == "True"
        and each["observedGeneration"] == cache["metadata"]["generation"]
        for each in cache.get("status", {}).get("conditions", [])
    )


def _gateway_pod(kubectl: Kubectl) -> str:
    """Name a pod that is ready and stays."""
    pods = kubectl.get("pods", "-l", PODS, "--field-selector=status.phase=Running")["items"]
    ready = [
        pod["metadata"]["name"]
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp")
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])
    ]
    return f"pod/{ready[0]}"


def _bump(kubectl: Kubectl, version: str) -> None:
    patch = json.dumps({"spec": {"model": {"version": version}}})
    kubectl.run("patch", "icache", NAME, "--type=merge", f"--patch={patch}")


def _keyspaces(kubectl: Kubectl) -> dict[str, str]:
    """Return the keyspace of each layer, as status tells it once no gateway serves another."""
    layers = kubectl.get("icache", NAME)["status"]["layers"]
    return {layer["name"]: layer["keyspace"] for layer in layers}


def _hit(client: ChatClient, tenant: str) -> Answer | None:
    answer = client.embed(*TEXTS, model=EMBEDDER, tenant=tenant)
    return answer if answer.is_hit else None


def _vectors(answer: Answer) -> list[bytes]:
    """Return the vectors as they are kept: an embedder may write more digits than its numbers have."""
    return [array("f", each["embedding"]).tobytes() for each in json.loads(answer.body)["data"]]


def _similarity(answer: Answer) -> str:
    return answer.headers.get("cachewright-similarity", "")
