"""Where Kafka's own producer, which Connect sends by, puts a record: by MurmurHash2 of its key."""

from __future__ import annotations

import struct

_SEED, _FACTOR, _ALL = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def partition(key: str, partitions: int) -> int:
    """The partition of a key among so many."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def murmur2(text: bytes) -> int:
    """The hash as 32 bits without a sign, with Kafka's seed."""
    found = _SEED ^ len(text)
    whole = len(text) & ~3
    for (word,) in struct.iter_unpack("<I", text[:whole]):
        mixed = word * _FACTOR & _ALL
        found = (found * _FACTOR & _ALL) ^ ((mixed ^ mixed >> 24) * _FACTOR & _ALL)
    if rest := text[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _FACTOR & _ALL
    found = (found ^ found >> 13) * _FACTOR & _ALL
    return found ^ found >> 15
