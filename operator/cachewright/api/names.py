"""Names that users and other programs rely on: API group, labels, annotations. They are for ever."""

from __future__ import annotations

from typing import Final

GROUP: Final = "cachewright.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "InferenceCache"
PLURAL: Final = "inferencecaches"
SINGULAR: Final = "inferencecache"
SHORT_NAME: Final = "icache"
CATEGORY: Final = "cachewright"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"

FIELD_MANAGER: Final = "cachewright"
"""The one field manager of every server-side apply."""

LABEL_USE: Final = "cachewright.dev/use"
"""On a user's Secret, value `"true"`: this Secret may be used by InferenceCaches of its namespace."""

USE_OPERATOR: Final = "operator"
"""Value of that label on Secrets that the operator made; no InferenceCache may refer to those."""

LABEL_CACHE: Final = "cachewright.dev/cache"
"""On each child: the name of its InferenceCache."""

LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"

ANNOTATION_CHECKSUM_PREFIX: Final = "checksum.cachewright.dev/"
"""On pod templates: a checksum per input that must roll the pods when it changes."""

FINALIZER: Final = "cachewright.dev/clean-up"
"""On InferenceCaches with `deletionPolicy: Delete`: their end waits a while, until entries are removed."""

ANNOTATION_MODEL_VERSION: Final = "cachewright.dev/model-version"
"""On the engine's pod template: the version of the model that these pods serve."""

ANNOTATION_WORKLOAD_SERVES: Final = "cachewright.dev/workload-serves"
"""On an InferenceCache, value `<identity>/<version>`: pods of this identity serve this version, whatever
else speaks against it."""

ANNOTATION_PREFIX_SETTINGS: Final = "prefix.cachewright.dev/settings"
"""Which settings of an engine's prefix cache these are: on what carries them to the engine."""

ANNOTATION_PREFIX_ORIGINAL: Final = "prefix.cachewright.dev/original"
"""On a pod that was edited: its engine's container, and the words of its command line before."""

ANNOTATION_PREFIX_STAMPS: Final = "prefix.cachewright.dev/stamps"
"""On settings: the workload whose pod template is to name them as soon as its user changes it."""

ANNOTATION_PREFIX_REPLACES: Final = "prefix.cachewright.dev/replaces"
"""On settings: what the pod template names that is gone, and may be replaced."""

ANNOTATION_PREFIX_REACHED: Final = "prefix.cachewright.dev/reached"
"""On settings, `"true"`: the pod template was seen to name them."""

ANNOTATION_PREFIX_SINCE: Final = "prefix.cachewright.dev/since"
"""On a file of such settings: when they came, RFC 3339."""

ANNOTATION_PREFIX_PATCHED: Final = "prefix.cachewright.dev/patched"
"""On a pod template that was patched, and so on its pods: a digest of the words that its engine was given,
then its container and the words before."""

LABEL_CLOUDNATIVE_PG_CLUSTER: Final = "cnpg.io/cluster"
"""CloudNativePG's own label of what belongs to a Cluster: pods and volume claims."""

LABEL_PREFIX_PATCHED: Final = "prefix.cachewright.dev/patched-for"
"""On a workload whose pod template was patched: the name of the InferenceCache that wanted it."""

MAX_NAME_LENGTH: Final = 40
"""Leaves room for the longest suffix we append within the 63 characters of a DNS label."""

QDRANT_PORT: Final = 6333
"""Where a managed Qdrant answers."""


def postgres_name(cache_name: str) -> str:
    """Name of everything that belongs to the managed PostgreSQL."""
    return f"{cache_name}-postgres"


def qdrant_name(cache_name: str) -> str:
    """Name of everything that belongs to the managed Qdrant."""
    return f"{cache_name}-qdrant"


def qdrant_url(cache_name: str, namespace: str) -> str:
    """URL of the managed Qdrant."""
    return f"http://{qdrant_name(cache_name)}.{namespace}.svc:{QDRANT_PORT}"
