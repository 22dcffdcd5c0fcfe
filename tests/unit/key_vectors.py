"""The golden vectors of the key scheme: from fixed requests to every name made of them, as JSON.

Compared with `tests/golden/keys/cw1.json`; run as a program it prints them, for other processes to compare.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from cachewright.keys.canonical import canonical_json, parse_json
from cachewright.keys.context import Context, Document
from cachewright.keys.digest import EntryName, ExactQuestion, exact_digest, tenant_tag
from cachewright.keys.keyspaces import Keyspace

KEY = bytes(range(32))
KEYSPACE = Keyspace("0123456789abcdef", 7)
CHAT = "/v1/chat/completions"

CASES: dict[str, tuple[str, bytes, str, dict[str, list[str]], Context]] = {
    "plain": (
        '{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0}',
        b"acme",
        "",
        {},
        Context(),
    ),
    "spelled otherwise": (
        ' {"temperature":0.0,"stream":false,\n"messages":[{"content":"h\\u0069","role":"user"}],"model":"m"}',
        b"acme",
        "",
        {},
        Context(),
    ),
    "another tenant": ('{"model":"m","messages":[],"temperature":0}', "é".encode(), "", {}, Context()),
    "single tenant": ('{"model":"m","messages":[],"temperature":0}', b"", "", {}, Context()),
    "query and headers": (
        '{"model":"m","messages":[]}',
        b"acme",
        "b=2&a=1",
        {"openai-beta": ["x", "y"], "openai-project": [], "api-version": [""]},
        Context(),
    ),
    "numbers": (
        '{"a":[0.1,1e2,100.0,-0.0,1e22,5e-324,18446744073709551615,0.30000000000000004]}',
        b"t",
        "",
        {},
        Context(),
    ),
    "unicode": (
        '{"\u00e9":"\U0001f600","e\u0301":"\\u00e9","\uffff":1,"\U00010000":2}',
        b"t",
        "",
        {},
        Context(),
    ),
    "role": ('{"model":"m"}', b"t", "", {}, Context(role="admin")),
    "whole context": (
        '{"model":"m"}',
        b"t",
        "",
        {},
        Context("v7", (Document("d1", 2), Document("d2")), "arm", "g1", "admin", 1, 2, 3),
    ),
}


def vectors() -> str:
    """Render every case with all that is made of it."""
    return (
        json.dumps({name: _vector(*case) for name, case in CASES.items()}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _vector(
    body: str, tenant: bytes, query: str, headers: dict[str, list[str]], context: Context
) -> dict[str, str]:
    parsed: Any = parse_json(body.encode())
    tag = tenant_tag(KEY, tenant)
    values = tuple((name, tuple(texts)) for name, texts in headers.items())
    digest = exact_digest(KEY, tag, ExactQuestion(CHAT, query, values, parsed, context))
    return {
        "body": body,
        "canonical": canonical_json(parsed).decode(),
        "context": context.hash().hex(),
        "key": EntryName("fedcba9876543210", KEYSPACE, tag, digest).key,
    }


if __name__ == "__main__":
    sys.stdout.write(vectors())
