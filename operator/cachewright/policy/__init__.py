"""Rules of the data plane as pure functions: what is cacheable, what may be stored, and why not."""
