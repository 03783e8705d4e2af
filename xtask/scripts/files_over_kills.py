"""Files that are replaced, appended to and removed, each time with fsync, until the disk goes away;
and the judge of what is left of them.

usage: files_over_kills.py write FOLDER ROUND SEED     output: the reports
       files_over_kills.py judge FOLDER REPORTS

Reports: `T NAME GENERATION KIND` before something is tried, `K NAME GENERATION` once the file
system has promised it. A file then holds what its last kept generation made of it, or what a later
one did that was tried. Its contents follow from its name and generation.
"""

import hashlib
import os
import random
import sys

NAMES = 120
FOLDERS = 6
SIZES = [0, 100, 4096, 5000, 30_000, 200_000, 1_000_000]
REMOVE_SHARE = 0.15
GENERATIONS_PER_ROUND = 1_000_000


def content(name, generation):
    dice = random.Random("%s %d" % (name, generation))
    head = ("%s %d\n" % (name, generation)).encode()
    size = dice.choice(SIZES)
    noise = hashlib.shake_128(head).digest(size // 2)
    return head + noise + head * ((size - len(noise)) // len(head))


def sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def replace(path, data):
    with open(path + ".new", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
    sync_folder(os.path.dirname(path))


def say(line):
    os.write(1, (line + "\n").encode())


def write(root, round_number, seed):
    dice = random.Random(seed)
    generation = round_number * GENERATIONS_PER_ROUND
    for folder in range(FOLDERS):
        os.makedirs("%s/%d" % (root, folder), exist_ok=True)
    sync_folder(root)
    while True:
        generation += 1
        name = "%d/%d" % (dice.randrange(FOLDERS), dice.randrange(NAMES))
        path = "%s/%s" % (root, name)
        removes = dice.random() < REMOVE_SHARE and os.path.exists(path)
        say("T %s %d %s" % (name, generation, "removed" if removes else "written"))
        if removes:
            os.remove(path)
            sync_folder(os.path.dirname(path))
        else:
            replace(path, content(name, generation))
        say("K %s %d" % (name, generation))


def read_reports(path):
    """What each file may be: a list of (generation, kind), the last promise first."""
    allowed, promises = {}, 0
    for line in open(path):
        words = line.split()
        if words[0] == "T":
            allowed.setdefault(words[1], [(0, "removed")]).append((int(words[2]), words[3]))
        else:
            kept = int(words[2])
            allowed[words[1]] = [one for one in allowed[words[1]] if one[0] >= kept]
            promises += 1
    return allowed, promises


def judge(root, reports):
    allowed, promises = read_reports(reports)
    there = 0
    for name, states in allowed.items():
        path = "%s/%s" % (root, name)
        if os.path.exists(path):
            data = open(path, "rb").read()
            good = any(data == content(name, one) for one, kind in states if kind == "written")
            there += 1
        else:
            good = any(kind == "removed" for _, kind in states)
        if not good:
            sys.exit("%s is none of %s" % (name, states))
    print("%d promises kept, %d files whole" % (promises, there))


def main():
    if sys.argv[1] == "judge":
        return judge(sys.argv[2], sys.argv[3])
    try:
        write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    except OSError as error:
        print("stopped: %s" % error, file=sys.stderr)


if __name__ == "__main__":
    main()
