"""The test suite; one folder a tier."""
