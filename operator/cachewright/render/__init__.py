"""From an InferenceCache and resolved inputs to Kubernetes manifests: pure, one builder file per component.

Same input, same bytes: builders return fresh dicts and never read anything but their arguments.
"""
