"""Local mode: the same manifest, record, policy and gateway on one machine, without a cluster."""
