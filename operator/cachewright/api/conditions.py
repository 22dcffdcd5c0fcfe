"""Condition types and reasons: one constant for each word that status may carry.

docs/conditions.md explains every reason; a test compares the two.
"""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """Aspects of an InferenceCache that status reports."""

    READY = "Ready"
    """The endpoint serves, and answers are cached (kstatus)."""
    RECONCILING = "Reconciling"
    """The operator or a rollout is still at work (kstatus, present while true)."""
    STALLED = "Stalled"
    """Nothing will change until a person acts (kstatus, present while true)."""
    STORES_READY = "StoresReady"
    """The store answers and holds this cache's record."""
    GATEWAY_READY = "GatewayReady"
    """Enough gateway pods are ready."""
    ROTATION_COMPLETE = "RotationComplete"
    """The keyspaces in use are those of the spec, and no gateway serves older ones any more."""
    CALIBRATED = "Calibrated"
    """The threshold of similar questions was measured, or chosen; present where they share answers."""


class Reason(StrEnum):
    """Why a condition has its status."""

    READY = "Ready"
    """All is well."""
    PROGRESSING = "Progressing"
    """Children were written and are not all ready yet."""
    STORE_UNREADY = "StoreUnready"
    """The managed store's pod is not ready."""
    STORE_UNREACHABLE = "StoreUnreachable"
    """The store did not answer, or refused the credentials."""
    GATEWAY_UNREADY = "GatewayUnready"
    """Too few gateway pods are ready."""
    GATEWAY_STOPPED = "GatewayStopped"
    """`gateway.replicas` is 0."""
    SWITCHED = "Switched"
    """The keyspaces in use are those of the spec."""
    ROLLED_BACK = "RolledBack"
    """The same, and the latest change brought a retained keyspace back."""
    WAITING_FOR_WORKLOAD = "WaitingForWorkload"
    """The workload's pods do not all run the same yet."""
    ROLLOUT_NOT_SEEN = "RolloutNotSeen"
    """A new version waits for the workload for longer than `rotation.deadline`."""
    WORKLOAD_CHANGED = "WorkloadChanged"
    """The workload runs something else than the keyspace in use was made by, and the spec names no new
    version."""
    RECLAIM_FAILED = "ReclaimFailed"
    """The space of a keyspace that is to be deleted could not be reclaimed."""
    CALIBRATED = "Calibrated"
    """The threshold was measured for this embedder, or the object names it."""
    UNCALIBRATED = "Uncalibrated"
    """The object names no threshold, and none was measured for its embedder."""
    SUSPENDED = "Suspended"
    """`spec.suspend` is true: nothing is changed."""
    INVALID_SPEC = "InvalidSpec"
    """The spec breaks a rule; the last good state keeps running."""
    IMMUTABLE_FIELD = "ImmutableField"
    """A field changed that cannot change; the last good state keeps running."""
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a reason, not a password
    """A referenced Secret or key is missing or empty; the last good state keeps running."""
    SECRET_UNLABELLED = "SecretUnlabelled"  # noqa: S105
    """A referenced Secret lacks the label `cachewright.dev/use: "true"`."""
    SECRET_INVALID = "SecretInvalid"  # noqa: S105
    """A referenced Secret's content cannot be used."""
    CLEANED_UP = "CleanedUp"
    """The entries of a deleted object are gone from its external stores; an Event only."""
    CLEAN_UP_FAILED = "CleanUpFailed"
    """They could not all be removed in time, and end with their ttl; an Event only."""
    CACHE_ID_IN_USE = "CacheIdInUse"
    """Another object holds `spec.cacheID`."""
    TEMPLATE_NOT_FOUND = "TemplateNotFound"
    """The ConfigMap of `spec.promptTemplate`, or its key, is missing or empty; the last good state runs."""
    NAME_CONFLICT = "NameConflict"
    """An object with a name we need exists and is not ours; it is left alone."""
    FORBIDDEN = "Forbidden"
    """The operator's role lacks a right."""
    APPLY_FAILED = "ApplyFailed"
    """The API server refused a child."""
    API_UNAVAILABLE = "ApiUnavailable"
    """The API server could not be reached; the pass is repeated."""
    INTERNAL_ERROR = "InternalError"
    """The operator failed in a way it did not foresee; its log has the trace."""
