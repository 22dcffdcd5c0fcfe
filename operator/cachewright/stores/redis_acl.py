"""ACL users of a managed Redis or Valkey: from a cache id and password hashes to the server's `users.acl`.

Pure; `render` writes the result into a Secret. Each user may run just the commands that the stores in this
package send, on keys of this cache alone: no FLUSHALL, CONFIG or KEYS for anybody.
"""

from __future__ import annotations

from typing import Final

from cachewright.keys.digest import key_pattern

RECORD_COMMANDS: Final = ("ping", "eval", "exists", "hget", "hset", "hincrby", "set")
"""What publishing and reading the record and beating take; commands inside scripts count too."""

ENTRY_COMMANDS: Final = ("del", "evalsha", "get", "getrange", "hmget", "pttl")
"""What entries, their locks and markers take beyond that."""

TRACKING_COMMANDS: Final = ("client|tracking",)
"""What hearing of changed keys takes."""

JANITOR_COMMANDS: Final = ("hdel", "hkeys", "scan", "unlink")
"""What emptying a keyspace takes beyond that."""

GATEWAY_COMMANDS: Final = RECORD_COMMANDS + ENTRY_COMMANDS + TRACKING_COMMANDS + JANITOR_COMMANDS

OPERATOR_COMMANDS: Final = (*RECORD_COMMANDS, "info")
"""And what seeing the server's memory and role takes."""

HEALTH_COMMANDS: Final = ("ping",)
"""What probes take."""


def acl_lines(cache_id: str, gateway_sha256: str, operator_sha256: str) -> str:
    """Render `users.acl`; the hashes are SHA-256 of the passwords, as 64 lower-case hex digits."""
    keys = f"resetkeys ~{key_pattern(cache_id)}"
    return "\n".join(
        [
            "user default off resetkeys resetchannels -@all",
            _line("gateway", f"#{gateway_sha256} {keys}", GATEWAY_COMMANDS),
            _line("operator", f"#{operator_sha256} {keys}", OPERATOR_COMMANDS),
            _line("health", "nopass resetkeys", HEALTH_COMMANDS),
            "",
        ]
    )


def _line(user: str, rights: str, commands: tuple[str, ...]) -> str:
    allowed = " ".join(f"+{command}" for command in commands)
    return f"user {user} on {rights} resetchannels -@all {allowed}"
