"""Files on a disk that runs out of room, each with fsync, and the judge of what is left of them.

usage: files_until_full.py fill FOLDER REPORTS ROUND MIB    until something fails, behind so much
       files_until_full.py write FOLDER REPORTS ROUND MIB   so much, and nothing may fail
       files_until_full.py judge FOLDER REPORTS
       files_until_full.py thin FOLDER REPORTS              removes every other file
       files_until_full.py spare URI MIB                    writes so much to another volume
       files_until_full.py trim URI MIB                     trims it

REPORTS, on another disk, has a line for each file that the file system has promised: its name, or
`-` and its name once it is removed. A file's contents follow from its name. One that was being
written or removed when something failed may be there, in part or whole.
"""

import errno
import hashlib
import os
import random
import sys

import nbd

SIZES = [5_000, 200_000, 1_000_000, 4_000_000]
# What a disk without room may make of a write, in the words of a file system that lives on it.
REFUSALS = (errno.ENOSPC, errno.EIO, errno.EROFS)


def content(name):
    size = random.Random(name).choice(SIZES)
    return hashlib.shake_128(name.encode()).digest(size)


def sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def put(root, reports, name):
    """Writes a file and reports it once it is promised; how many bytes it has."""
    path = "%s/%s" % (root, name)
    data = content(name)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(root)
    reports.write(name + "\n")
    reports.flush()
    return len(data)


def fill(root, reports, round_number, mebibytes):
    written, number = 0, 0
    try:
        while True:
            written += put(root, reports, "r%s.%d" % (round_number, number))
            number += 1
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        print("%d files, %d MiB, then: %s" % (number, written >> 20, error.strerror))
        if written < mebibytes << 20:
            # That is no disk without room: nothing would be judged but what was there before.
            sys.exit("full with %d MiB, where %d have room" % (written >> 20, mebibytes))


def write(root, reports, round_number, mebibytes):
    written, number = 0, 0
    while written < mebibytes << 20:
        written += put(root, reports, "w%s.%d" % (round_number, number))
        number += 1
    print("%d files, %d MiB again" % (number, written >> 20))


def promised(path):
    names = []
    for line in open(path, encoding="utf-8"):
        words = line.split()
        if words[0] == "-":
            names.remove(words[1])
        else:
            names.append(words[0])
    return names


def judge(root, reports):
    names = promised(reports)
    for name in names:
        with open("%s/%s" % (root, name), "rb") as file:
            if file.read() != content(name):
                sys.exit("%s is not what was promised" % name)
    print("%d promised files are whole" % len(names))


def thin(root, reports):
    names = promised(reports)[::2]
    with open(reports, "a", encoding="utf-8") as file:
        for name in names:
            # Reported first: from now on nothing is promised of it.
            file.write("- %s\n" % name)
            file.flush()
            os.remove("%s/%s" % (root, name))
    kept = set(promised(reports))
    for name in set(os.listdir(root)) - kept - {"lost+found"}:
        os.remove("%s/%s" % (root, name))
    sync_folder(root)
    print("%d files removed" % len(names))


def on_volume(verb, uri, mebibytes):
    handle = nbd.NBD()
    handle.connect_uri(uri)
    for number in range(mebibytes):
        if verb == "trim":
            handle.trim(1 << 20, number << 20)
        else:
            handle.pwrite(os.urandom(1 << 20), number << 20)
    handle.flush()


def main():
    verb, root, path = sys.argv[1:4]
    if verb in ("spare", "trim"):
        return on_volume(verb, root, int(path))
    if verb == "judge":
        return judge(root, path)
    if verb == "thin":
        return thin(root, path)
    with open(path, "a", encoding="utf-8") as reports:
        if verb == "fill":
            fill(root, reports, sys.argv[4], int(sys.argv[5]))
        else:
            write(root, reports, sys.argv[4], int(sys.argv[5]))


if __name__ == "__main__":
    main()
