"""A backup tool that reads, after each snapshot, only what changed since the one before.

usage: changed.py TAMIS STORE URI VOLUME ROUNDS SEED

URI is that of VOLUME. In each round a client writes and trims at random; then a snapshot is taken,
and of it only the extents that `tamis:changed:NAME`, NAME the snapshot before, says changed are
copied over what the backup holds. The backup must then be the snapshot, to the byte; the extents
must be no more than what was written; and `nbdinfo --map` must tell the same ones.
"""

import json
import random
import subprocess
import sys

import nbd

MIB = 1 << 20
CHUNK = 4096
CONTEXT = "tamis:changed:"


def connect(uri, context=None):
    handle = nbd.NBD()
    if context:
        handle.add_meta_context(context)
    handle.connect_uri(uri)
    return handle


def version(uri, volume, name):
    return uri.replace("/%s?" % volume, "/%s@%s?" % (volume, name))


def take(tamis, store, name):
    subprocess.run([tamis, "snapshot", "create", store, name], check=True,
                   stdout=subprocess.DEVNULL)


def changed(handle, context):
    """Extents with the flag, as (offset, length), neighbours merged."""
    found, at, size = [], 0, handle.get_size()

    def extents(name, offset, entries, error):
        nonlocal at
        assert name == context and offset == at, (name, offset, at)
        for length, flags in zip(entries[::2], entries[1::2]):
            length = min(length, size - at)
            if flags & 1 and length:
                if found and sum(found[-1]) == at:
                    found[-1] = (found[-1][0], found[-1][1] + length)
                else:
                    found.append((at, length))
            at += length
        return 0

    while at < size:
        before = at
        handle.block_status(min(size - at, 1 << 30), at, extents)
        assert at > before, "no extent"
    return found


def told_by_nbdinfo(uri, context):
    said = subprocess.run(["nbdinfo", "--json", "--map=" + context, uri], check=True,
                          stdout=subprocess.PIPE).stdout
    found = []
    for extent in json.loads(said):
        if extent["type"] & 1:
            offset, length = extent["offset"], extent["length"]
            if found and sum(found[-1]) == offset:
                found[-1] = (found[-1][0], found[-1][1] + length)
            else:
                found.append((offset, length))
    return found


def change(handle, dice):
    """Writes and trims at random; the chunks that may have changed."""
    chunks, touched = handle.get_size() // CHUNK, set()
    for _ in range(dice.randrange(1, 60)):
        first = dice.randrange(chunks)
        count = min(dice.choice([1, 1, 1, 30, 400]), chunks - first)
        touched.update(range(first, first + count))
        if dice.randrange(4):
            handle.pwrite(dice.randbytes(count * CHUNK), first * CHUNK)
        else:
            handle.trim(count * CHUNK, first * CHUNK)
    return touched


def main(tamis, store, uri, volume, rounds, seed):
    dice = random.Random(int(seed))
    handle = connect(uri)
    handle.pwrite(dice.randbytes(4 * MIB), 0)
    take(tamis, store, "%s@0" % volume)
    size = handle.get_size()
    backup = bytearray()
    first = connect(version(uri, volume, "0"))
    for at in range(0, size, MIB):
        backup += first.pread(MIB, at)
    copied = written = 0
    for number in range(1, int(rounds) + 1):
        touched = change(handle, dice)
        take(tamis, store, "%s@%d" % (volume, number))
        context = CONTEXT + str(number - 1)
        of = version(uri, volume, number)
        target = connect(of, context)
        assert target.can_meta_context(context)
        extents = changed(target, context)
        for offset, length in extents:
            for at in range(offset, offset + length, MIB):
                part = min(MIB, offset + length - at)
                backup[at:at + part] = target.pread(part, at)
            chunks = range(offset // CHUNK, (offset + length) // CHUNK)
            assert touched.issuperset(chunks), "at %d is told what nobody wrote" % offset
        for at in range(0, size, MIB):
            same = backup[at:at + MIB] == target.pread(MIB, at)
            assert same, "another byte in MiB %d" % (at // MIB)
        assert told_by_nbdinfo(of, context) == extents, "nbdinfo tells something else"
        # The volume is as its newest snapshot is, and a name that is none is no context.
        assert changed(connect(uri, context), context) == extents
        assert not connect(uri, CONTEXT + "none").can_meta_context(CONTEXT + "none")
        copied += sum(length for _, length in extents)
        written += len(touched) * CHUNK
        target.shutdown()
    print("%s backups of %d MiB: %d KiB copied, %d KiB touched" % (
        rounds, size // MIB, copied // 1024, written // 1024))


if __name__ == "__main__":
    main(*sys.argv[1:])
