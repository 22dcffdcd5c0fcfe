"""The same manifest on one machine, without a cluster. Not built yet."""
