"""Measurements of the gateway beside its peers: `python -m bench`. Nothing here is part of the product."""
