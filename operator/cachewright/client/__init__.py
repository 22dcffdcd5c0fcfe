"""The public library: the cache layers without a gateway. Not built yet."""
