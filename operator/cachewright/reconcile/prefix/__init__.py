"""`layers.prefix`: what the engine is to be told, what its pods run, and what status says of both."""
