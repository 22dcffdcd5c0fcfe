"""cachewright: caches in front of served models, declared by one `InferenceCache` object."""

__version__ = "0.1.0"
