"""`make demo`: a cluster, the chart, examples, and requests that show what a cache does, also in a roll-out.

Each step says what is expected and what was seen; the exit code is 0 only if all of it was seen.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Final

from e2e.client import ChatClient
from e2e.cluster.console import Step
from e2e.cluster.errors import ClusterError
from e2e.demo_rotation import tell_rotation
from e2e.demo_semantic import tell_semantic
from e2e.installation import ROOT, Installation
from e2e.kubectl import Kubectl, wait_for
from e2e.story import Story

QUESTION: Final = "Why is the sky blue?"
READY_SECONDS: Final = 120.0
EXPECTED_CALLS: Final = 4
"""Of the six requests the two repeated ones are answered by the cache."""


def main() -> int:
    """Run the demo; returns the exit code."""
    started = time.monotonic()
    story = Story()
    try:
        story.title("A cluster with cachewright on it")
        installation = Installation.start()
        installation.install()
        tell_story(story, installation)
        tell_rotation(story, installation)
        tell_semantic(story, installation)
    except ClusterError as e:
        print(f"\nThe demo stopped: {e}", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - started:.0f} s.", flush=True)
    if story.failures:
        print(f"{len(story.failures)} of the above did not hold.", file=sys.stderr)
        return 1
    say_goodbye(installation)
    return 0


def tell_story(story: Story, installation: Installation) -> None:
    """Apply the example, wait for it, and send the requests."""
    kubectl = installation.kubectl
    story.title("kubectl apply -f examples/quickstart.yaml")
    with Step("a stand-in engine: OpenAI chat API, 600 ms an answer"):
        kubectl.apply(installation.engine_manifest())
        kubectl.run("rollout", "status", "deployment/engine", "--timeout=120s", timeout_seconds=130)
    kubectl.apply((ROOT / "examples" / "quickstart.yaml").read_text())
    with Step("waiting for the object to be Ready"):
        ready = wait_for("Ready", lambda: ready_condition(kubectl), READY_SECONDS)
    story.tell("the object is Ready", seen=ready["message"], holds=True)
    with kubectl.forward("service/quickstart-gateway", 8080) as port:
        before = engine_calls(kubectl)
        ask(story, ChatClient(port))
        asked = engine_calls(kubectl) - before
    story.tell("six requests", seen=f"{asked} calls of the model", holds=asked == EXPECTED_CALLS)
    story.title("kubectl get icache")
    print(kubectl.run("get", "icache"), end="", flush=True)


def ask(story: Story, client: ChatClient) -> None:
    """Send the requests of the story through one gateway."""
    story.title("Requests through the gateway")
    # A question of its own for each run, so that running the demo again tells the same story.
    question = f"{QUESTION} (asked at {time.time():.0f})"
    wait_for("an answer of the gateway", lambda: client.request("GET", "/readyz").status == 200, 30)
    first = client.chat(question)
    story.answer("the first request goes to the model: MISS", first, holds=not first.is_hit)
    second = client.chat(question)
    story.answer("the same again comes from the cache: HIT", second, holds=second.is_hit)
    story.tell(
        "with the same answer, sooner",
        seen=f"{first.seconds / second.seconds:.0f} times as fast",
        holds=first.body == second.body and second.seconds < first.seconds,
    )
    stream = client.chat(question, stream=True)
    events = stream.body.count(b"data: ")
    whole = events > 1 and stream.body.rstrip().endswith(b"data: [DONE]")
    story.answer("the same as a stream, from the same entry: HIT", stream, holds=stream.is_hit and whole)
    other = client.chat(question, tenant="globex")
    story.answer("another tenant gets nothing of it: MISS", other, holds=not other.is_hit)
    warm = client.chat(question, temperature=0.7)
    story.answer("temperature 0.7 is not cached: BYPASS", warm, holds=warm.detail == "sampling")
    nobody = client.chat(question, tenant=None)
    story.answer("no tenant, no cache: BYPASS", nobody, holds=nobody.detail == "no_tenant")


def ready_condition(kubectl: Kubectl) -> dict[str, str] | None:
    """Return the Ready condition of the example once it is true for its newest spec."""
    cache = kubectl.get("icache", "quickstart")
    for condition in cache.get("status", {}).get("conditions", []):
        fresh = condition["observedGeneration"] == cache["metadata"]["generation"]
        if condition["type"] == "Ready" and condition["status"] == "True" and fresh:
            return dict(condition)
    return None


def engine_calls(kubectl: Kubectl) -> int:
    """Ask the engine how often it was called."""
    with kubectl.forward("service/engine", 8000) as port:
        return sum(json.loads(ChatClient(port).request("GET", "/calls").body).values())


def say_goodbye(installation: Installation) -> None:
    """Tell how to look around and how to remove everything."""
    kubeconfig = installation.cluster.state.kubeconfig
    print(
        f"""
Look around:
  export KUBECONFIG={kubeconfig}
  export PATH=$PATH:$(dirname $(python3 -m e2e.cluster tools kubectl))
  kubectl get icache -o wide
  kubectl describe icache rotation similar
  kubectl port-forward service/quickstart-gateway 8080  # then use http://localhost:8080/v1

Remove everything:
  python3 -m e2e.cluster down        # the cluster; `make demo` again is quick
  python3 -m e2e.cluster down --all  # its images too
""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
