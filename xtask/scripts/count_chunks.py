"""Counts what deduplication and LZ4 can save on disk images, knowing nothing of Tamis.

usage: count_chunks.py IMAGE...      output: one JSON object

A set of digests over all 4-KiB chunks of all images; each new one is compressed with the reference
LZ4 library (liblz4.so.1, which every Debian has), and counted plain when that does not make it
smaller.
"""

import ctypes
import hashlib
import json
import sys

CHUNK = 4096
ZERO = bytes(CHUNK)


def lz4_size():
    """A function from a chunk to its compressed size."""
    library = ctypes.CDLL("liblz4.so.1")
    bound = library.LZ4_compressBound(CHUNK)
    out = ctypes.create_string_buffer(bound)
    return lambda data: library.LZ4_compress_default(data, out, len(data), bound)


def main():
    compressed_size = lz4_size()
    seen = set()
    chunks = zeros = lz4_bytes = 0
    for path in sys.argv[1:]:
        with open(path, "rb") as image:
            while data := image.read(CHUNK):
                chunks += 1
                data = data.ljust(CHUNK, b"\0")
                if data == ZERO:
                    zeros += 1
                    continue
                digest = hashlib.blake2b(data, digest_size=32).digest()
                if digest not in seen:
                    seen.add(digest)
                    lz4_bytes += min(CHUNK, compressed_size(data))
    found = {"chunks": chunks, "zeros": zeros, "unique": len(seen), "lz4_bytes": lz4_bytes}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
