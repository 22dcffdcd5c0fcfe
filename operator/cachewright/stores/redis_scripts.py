"""The Lua scripts that run inside Redis or Valkey; each touches keys of one hash tag only."""

from __future__ import annotations

from typing import Final

PUBLISH_RECORD: Final = """
local held = tonumber(redis.call('HGET', KEYS[1], 'revision') or '-1')
local offered = tonumber(ARGV[1])
if held > offered then return held end
if held == offered and redis.call('HGET', KEYS[1], 'free') then return held end
redis.call('HSET', KEYS[1], 'revision', ARGV[1], 'record', ARGV[2], 'free', ARGV[5], 'fenced', ARGV[6])
if held < 0 then redis.call('HSET', KEYS[1], 'changes', ARGV[3]) end
redis.call('HINCRBY', KEYS[1], 'changes', ARGV[4])
return offered
"""
"""KEYS: record copy. ARGV: revision, JSON, where to begin to count changes if there is no copy yet, by how
much to raise them, keyspaces that may be written to, those of them that need the heartbeat.

The keyspaces are separated, begun and ended with a space. Writes only what is greater, or completes a copy
from before there were permissions; returns the revision held then.
"""

BEAT: Final = """
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HINCRBY', KEYS[1], 'changes', ARGV[3]) end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[2])
return 1
"""
"""KEYS: record copy, heartbeat. ARGV: revision that the copy must hold, TTL in ms, by how much to raise the
changes where there is no heartbeat.

1 if set, else 0. After a pause nobody knows what the pods ran meanwhile, so no write from before is let in.
"""

WRITE_ENTRY: Final = """
local held = redis.call('HMGET', KEYS[1], 'revision', 'changes', 'free', 'fenced')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return 0 end
if not string.find(held[3] or '', ARGV[5], 1, true) then
    if not string.find(held[4] or '', ARGV[5], 1, true) then return -1 end
    if redis.call('EXISTS', KEYS[3]) == 0 then return -1 end
end
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[3])
return 1
"""
"""KEYS: record copy, entry, heartbeat. ARGV: revision and changes as seen, TTL in ms, value, keyspace between
spaces.

1 if written, 0 if the marks are others, -1 if the keyspace may not be written to now.
"""

REMOVE_ENTRY: Final = """
redis.call('HINCRBY', KEYS[1], 'changes', ARGV[1])
return redis.call('DEL', KEYS[2])
"""
"""KEYS: record copy, entry. ARGV: by how much to raise the changes. 1 if there was an entry, else 0.

Without a record's copy the changes mean nothing yet; it brings a beginning of its own.
"""

EXTEND_ENTRY: Final = """
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
if #held + #ARGV[2] > tonumber(ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], held .. ARGV[2], 'KEEPTTL')
return 1
"""
"""KEYS: entry. ARGV: what it must begin with, what is appended, longest value. 1 if appended, else 0."""

COUNT_UP: Final = """
local counted = tonumber(redis.call('GET', KEYS[1]) or '0') + 1
if counted == 1 then redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])
else redis.call('SET', KEYS[1], counted, 'KEEPTTL') end
return counted
"""
"""KEYS: count. ARGV: TTL in ms, from the first on. Returns the count.

With commands that entries need anyway, so that no user of a store needs another right.
"""

RELEASE_LOCK: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""
"""KEYS: lock. ARGV: the holder's token. 1 if it was held with that token and is free now, else 0."""

HOLD_LOCK: Final = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
"""KEYS: lock. ARGV: token, TTL in ms. 1 if it is held with that token now, else 0."""

RAISE_GENERATIONS: Final = """
local floor = tonumber(redis.call('HGET', KEYS[1], 'floor') or '0')
for index = 2, #ARGV do
    if redis.call('HINCRBY', KEYS[1], ARGV[index], 1) <= floor then
        redis.call('HSET', KEYS[1], ARGV[index], floor + 1)
    end
end
return redis.call('HINCRBY', KEYS[1], 'changes', ARGV[1])
"""
"""KEYS: record copy. ARGV: by how much to raise the changes, counters.

Raises each counter by one, and above the highest value at which one was dropped. Returns the changes.
"""

DROP_GENERATIONS: Final = """
local held = redis.call('HMGET', KEYS[1], 'changes', 'floor')
if held[1] ~= ARGV[2] then return 0 end
local floor = tonumber(held[2] or '0')
local highest, dropped = floor, 0
for index = 3, #ARGV, 2 do
    if redis.call('HGET', KEYS[1], ARGV[index]) == ARGV[index + 1] then
        redis.call('HDEL', KEYS[1], ARGV[index])
        highest = math.max(highest, tonumber(ARGV[index + 1]))
        dropped = dropped + 1
    end
end
if dropped == 0 then return 0 end
if highest > floor then redis.call('HSET', KEYS[1], 'floor', highest) end
redis.call('HINCRBY', KEYS[1], 'changes', ARGV[1])
return dropped
"""
"""KEYS: record copy. ARGV: by how much to raise the changes, what they must be, then each counter and the
value it must have.

Returns how many were dropped. A counter that is raised again begins above every dropped one's value, since
entries that were stored at such a value may still lie there.
"""
