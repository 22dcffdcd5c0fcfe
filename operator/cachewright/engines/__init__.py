"""The engines' own prefix caches: what they are started with, and what they do with prompts. Pure."""
