"""Checks that engines take the arguments we render, by their own argument parsers, without a GPU.

`python -m e2e.parsers` installs each engine's package into an environment of its own (8 GB each, most of it
CUDA), lets its parser read every argument that `cachewright.engines` can render, and records what was taken
with which version. `make verify-engines` calls it; no other check needs it.
"""
