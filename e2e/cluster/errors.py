"""What can go wrong with the test cluster: one exception, which the command line prints as a sentence."""


class ClusterError(Exception):
    """The cluster, or a part of it, could not be made; the message says what to do about it."""
