"""Stores: where entries and the broadcast copy of the record live; the only importers of their clients."""
