"""Embedding models behind one Protocol; the only importer of their runtimes."""
