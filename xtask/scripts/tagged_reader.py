"""Reads volumes back and prints what every chunk that is not zero holds.

usage: tagged_reader.py URI...      output: VOLUME CHUNK CONTENT
"""

import sys

import nbd
import tagged

CHUNKS = tagged.CHUNKS_PER_CONNECTION * tagged.CONNECTIONS_MAX
CHUNKS_PER_READ = 256


def main():
    for uri in sys.argv[1:]:
        volume = tagged.volume_of(uri)
        handle = nbd.NBD()
        handle.connect_uri(uri)
        for first in range(0, CHUNKS, CHUNKS_PER_READ):
            data = handle.pread(CHUNKS_PER_READ * tagged.CHUNK, first * tagged.CHUNK)
            for index in range(CHUNKS_PER_READ):
                piece = bytes(data[index * tagged.CHUNK : (index + 1) * tagged.CHUNK])
                content = tagged.recognise(piece, first + index, volume)
                if content != "z":
                    print(volume, first + index, content)
        handle.shutdown()


if __name__ == "__main__":
    main()
