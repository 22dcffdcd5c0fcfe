"""From what is wanted and what is seen to what is written: `observe → plan → apply → one status write`."""
