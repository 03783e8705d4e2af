"""The contents that the kill scenario writes and recognises.

A chunk is zero, one of a few shared patterns (so that there is something to deduplicate), or
unique: a tag that names the write and the place, then bytes that follow from the tag, half of them
noise and half of them repetition, so that there is something to compress. A chunk that was torn,
mixed up or moved matches nothing and is `bad`.
"""

import hashlib
import struct

CHUNK = 4096
# Each connection has its own range of chunks, small, so that it overwrites itself often.
CHUNKS_PER_CONNECTION = 1024
CONNECTIONS_MAX = 8
PATTERNS = 16

TAG = struct.Struct("<8sQQ8s")
MAGIC = b"tamistag"


def unique(number, chunk, volume):
    tag = TAG.pack(MAGIC, number, chunk, volume.encode()[:8])
    noise = hashlib.shake_128(tag).digest(CHUNK // 2)
    return (tag + noise + tag * (CHUNK // TAG.size))[:CHUNK]


def shared(pattern):
    return hashlib.shake_128(b"pattern %d" % pattern).digest(CHUNK)


ZERO = bytes(CHUNK)
SHARED = {shared(pattern): pattern for pattern in range(PATTERNS)}


def recognise(data, chunk, volume):
    """The content of one chunk, as the judge reads it."""
    if data == ZERO:
        return "z"
    if data in SHARED:
        return "s%d" % SHARED[data]
    magic, number, _, _ = TAG.unpack_from(data)
    if magic == MAGIC and data == unique(number, chunk, volume):
        return "u%d" % number
    return "bad"


def volume_of(uri):
    """`nbd+unix:///NAME?socket=...` -> NAME"""
    return uri.split("///", 1)[1].split("?", 1)[0]
