"""The caching gateway: plain ASGI in front of an OpenAI-compatible upstream."""
