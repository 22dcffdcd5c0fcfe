"""The `InferenceCache` object as pydantic models: the only schema, from which all others are generated."""
