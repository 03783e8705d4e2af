"""Fills a store with data that neither repeats nor compresses, and goes on from there.

usage: fill.py fill MODEL.json URI FREE-BYTES      the whole story, its end written as a model
       fill.py verify MODEL.json URI               reads everything against that model

FREE-BYTES is what the empty store says it has room for.
"""

import errno
import hashlib
import json
import sys
import time

import nbd

BLOCK = 64 * 1024
ZERO = bytes(BLOCK)
# Of what the empty store called free, this share at least must be writable.
USABLE_SHARE_MIN = 0.8
# Overwriting a part of the store this often must never run out of space.
OVERWRITES = 12
OVERWRITTEN_SHARE = 0.25
# How long freed space may take to come back before we call it lost.
PATIENCE_S = 300


def content(block, version):
    return hashlib.shake_128(b"%d.%d" % (block, version)).digest(BLOCK)


class Filler:
    """The volume and, block for block, which version of its content stands there."""

    def __init__(self, uri, model=None):
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.versions = dict(model or {})
        self.trimmed = set()

    def write(self, block, version):
        """True when the store took it, False when it is full; anything else is an error."""
        try:
            self.handle.pwrite(content(block, version), block * BLOCK)
        except nbd.Error as error:
            if error.errno != "ENOSPC" and error.errnum != errno.ENOSPC:
                raise
            # What a refused write left behind is either: not to be relied on.
            self.versions.pop(block, None)
            return False
        self.versions[block] = version
        self.trimmed.discard(block)
        return True

    def overwrite(self, blocks):
        for version in range(OVERWRITES):
            for block in range(blocks):
                if not self.write(block, version):
                    sys.exit("full in overwrite %d of a quarter of the store" % version)

    def fill(self, block):
        while self.write(block, 100):
            block += 1
        return block

    def trim_half(self):
        blocks = sorted(self.versions)[::2]
        for block in blocks:
            self.handle.trim(BLOCK, block * BLOCK)
            del self.versions[block]
            self.trimmed.add(block)
        return blocks

    def write_again(self, blocks):
        """Writes into freed space, which may come back a little at a time."""
        begun = time.monotonic()
        for block in blocks:
            while not self.write(block, 200):
                if time.monotonic() - begun > PATIENCE_S:
                    sys.exit("freed space did not come back")
                time.sleep(0.1)

    def verify(self, where):
        for block, version in sorted(self.versions.items()):
            if bytes(self.handle.pread(BLOCK, block * BLOCK)) != content(block, version):
                sys.exit("%s: block %d does not hold version %d" % (where, block, version))
        for block in sorted(self.trimmed):
            if bytes(self.handle.pread(BLOCK, block * BLOCK)) != ZERO:
                sys.exit("%s: trimmed block %d is not zero" % (where, block))


def fill(path, uri, free_bytes):
    filler = Filler(uri)
    filler.overwrite(int(free_bytes * OVERWRITTEN_SHARE) // BLOCK)
    first_refused = filler.fill(len(filler.versions))
    print("full after %d MiB" % (len(filler.versions) * BLOCK >> 20))
    if len(filler.versions) * BLOCK < free_bytes * USABLE_SHARE_MIN:
        sys.exit("full long before its free space was used")
    filler.handle.flush()
    filler.verify("full")
    # Full stays full, and refuses without harm.
    for block in range(first_refused, first_refused + 16):
        filler.write(block, 101)
    filler.handle.flush()
    freed = filler.trim_half()
    filler.handle.flush()
    filler.verify("after trim")
    filler.write_again(freed[: len(freed) * 3 // 4])
    filler.handle.flush()
    filler.verify("after writing again")
    print("wrote %d MiB again into trimmed space" % (len(freed) * 3 // 4 * BLOCK >> 20))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"versions": filler.versions, "trimmed": sorted(filler.trimmed)}, file)


def verify(path, uri):
    with open(path, encoding="utf-8") as file:
        model = json.load(file)
    filler = Filler(uri, {int(block): version for block, version in model["versions"].items()})
    filler.trimmed = set(model["trimmed"])
    filler.verify("after a restart")


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        verify(sys.argv[2], sys.argv[3])
