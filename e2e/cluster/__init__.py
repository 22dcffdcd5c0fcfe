"""A throwaway Kubernetes for tests and demo: `python -m e2e.cluster up` makes it, `down` removes every trace.

Standard library only, so that it runs before the project's virtual environment exists.
"""
