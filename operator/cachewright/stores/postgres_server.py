"""What a PostgreSQL server says of itself: whether it takes writes, what our role may do, its connections.

Read by `checking`.
"""

from __future__ import annotations

from typing import Final

from cachewright.errors import StoreUnfit
from cachewright.stores.checking import PostgresFacts
from cachewright.stores.postgres_link import PostgresLink

OLDEST_SERVER: Final = 140000
"""PostgreSQL 14, the oldest that its makers still maintain."""

_ASK: Final = """SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool,
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false), current_user,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"""


async def read_facts(link: PostgresLink) -> PostgresFacts:
    """Ask; raises StoreUnfit where the server, or our role in it, cannot keep anything of ours."""
    async with link.use("ask PostgreSQL about itself") as connection:
        row = await (await connection.execute(_ASK)).fetchone()
    number, version, is_replica, is_read_only, may_create, role, connections = row or ()
    if number < OLDEST_SERVER:
        raise StoreUnfit(f"PostgreSQL 14 or newer is needed; the server is {version}")
    if is_replica:
        raise StoreUnfit("the server is a replica that takes no writes: name the primary in the DSN")
    if is_read_only:
        raise StoreUnfit("the database is read-only: default_transaction_read_only is on")
    if not may_create:
        raise StoreUnfit(
            f"role {role} may not make tables: GRANT CREATE ON SCHEMA public TO {role},"
            " or let its search_path begin with a schema of its own"
        )
    return PostgresFacts(connections=connections)
