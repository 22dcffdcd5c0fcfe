"""Partitions: from all of a request but its question to the digest that a semantic match must share.

Two requests meet in the semantic layer only where tenant, path, headers, the rest of the body, context and
generations are the same; only then are their questions compared. Called by `keys.generations` and so by the
semantic layer.
"""

from __future__ import annotations

import hashlib

from cachewright.keys.canonical import canonical_json
from cachewright.keys.digest import DIGEST_BYTES, ExactQuestion, sort_query
from cachewright.keys.fields import encode_fields, encode_list
from cachewright.keys.scheme import EXCLUDE_LIST_VERSION, EXCLUDED_FIELDS, KEY_SCHEME


def partition_digest(key: bytes, tag: str, rest: ExactQuestion, where: str) -> str:
    """Digest a request of the tenant with tag `tag` without its question, as 64 hex digits.

    `rest` has the body that is left when the question is cut out, and `where` names the place of the cut, so
    that what stands before it can never be taken for what stands behind it. Raises AmbiguousJson where the
    body has no canonical form.
    """
    body = {name: value for name, value in rest.body.items() if name not in EXCLUDED_FIELDS}
    fields = [
        ("scheme", KEY_SCHEME.encode()),
        ("excluded", str(EXCLUDE_LIST_VERSION).encode()),
        ("tenant", tag.encode()),
        ("path", rest.path.encode()),
        ("query", encode_list(sort_query(rest.query))),
        *((f"header:{name}", encode_list(values)) for name, values in sorted(rest.headers)),
        ("where", where.encode()),
        ("body", canonical_json(body)),
        ("context", rest.context.hash()),
    ]
    return hashlib.blake2b(
        encode_fields("cachewright/digest/partition", fields), digest_size=DIGEST_BYTES, key=key
    ).hexdigest()
