"""What each cache layer means, over store Protocols: no HTTP, no client library."""
