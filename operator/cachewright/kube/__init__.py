"""The Kubernetes API behind one small Protocol; the only importer of the `kubernetes` package."""
