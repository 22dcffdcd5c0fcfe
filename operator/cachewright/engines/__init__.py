"""What the engines' own prefix caches do with prompts: pure."""
