"""From a request or a spec to the names of entries: pure, versioned, pinned by golden vectors."""
