"""The API models as Kubernetes and people read them: CRD, API reference, offline validation."""
