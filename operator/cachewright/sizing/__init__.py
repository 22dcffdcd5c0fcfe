"""How much memory and disk a cache's stores need; for `cachewright size` and for status. Pure."""
