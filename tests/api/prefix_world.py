"""An operator whose rights reach one namespace, and engines whose pods the test makes.

Nothing runs Deployments here, so a test replaces pods as their controllers would.
"""

from __future__ import annotations

import json
from typing import Any

from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS
from tests.api.harness import Harness
from tests.support.caches import Document


class PrefixWorld(Harness):
    """An operator with a namespace's rights, and an engine's Deployment whose pods the test makes."""

    def user_applies(self, deployment: Document, *, server_side: bool = False) -> None:
        """Apply as the workload's user does."""
        options = ["--server-side", "--field-manager=user"] if server_side else []
        self.kubectl("apply", *options, "-f", "-", stdin=json.dumps(deployment))

    def deployment(self, name: str = "vllm") -> Document:
        """Read the engine's Deployment."""
        found: Document = json.loads(self.kubectl("get", "deployment", name, "-o", "json"))
        return found

    def stamp(self, name: str = "vllm") -> str:
        """Return the settings that its pod template names."""
        metadata = self.deployment(name)["spec"]["template"]["metadata"]
        return str((metadata.get("annotations") or {}).get(ANNOTATION_PREFIX_SETTINGS, ""))

    def generation(self, name: str = "vllm") -> int:
        """Return the generation, which rises with each roll-out."""
        return int(self.deployment(name)["metadata"]["generation"])

    def replace_pods(self, name: str = "vllm") -> list[str]:
        """Make a pod of the template in place of those that are there; return the engine's words."""
        return self.replace_pod(name, self.deployment(name)["spec"]["template"])

    def replace_pod(self, name: str, template: Document) -> list[str]:
        """Make a pod of a template in place of the one of that name; return the engine's words."""
        self.kubectl("delete", "pod", f"{name}-pod", "--ignore-not-found", "--grace-period=0", "--force")
        metadata = {**template["metadata"], "name": f"{name}-pod"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        made: Document = json.loads(self.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
        words: list[str] = made["spec"]["containers"][0].get("args", [])
        return words

    async def told(self, name: str = "demo") -> str:
        """Run passes until the policy was seen to act and nothing is left to write; return the condition."""
        for _ in range(200):
            await self.settle(name)
            said = (await self.conditions(name))["PrefixCachingReady"]
            if not said.endswith(("Progressing", "PolicyAPIUnavailable")):
                return said
        raise AssertionError("the policy does not act")

    async def message(self, name: str = "demo") -> str:
        """Return what the condition says in full."""
        conditions: list[dict[str, Any]] = (await self.cache(name))["status"]["conditions"]
        return str(next(each["message"] for each in conditions if each["type"] == "PrefixCachingReady"))
