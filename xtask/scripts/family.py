"""One family of versions: a volume, its snapshots and their clones, all of them used at once.

usage: family.py TAMIS STORE SOCKET NAME SIZE SEED

Makes a volume of SIZE bytes called NAME. Each line of standard input, a number of steps, makes it
connect, go so many steps and disconnect, with everything flushed; it answers with a line that says
how many requests those were. At the end of the input it reads everything once more.

Of every version it knows each byte. A step is a burst of requests to one version, over several
connections and all in flight at once, on ranges that do not meet: reads, writes, trims and zeros,
whole chunks and parts of them, mostly within a small part of the volume that is read again and
again, so that what is read comes from whatever memory the server keeps. What was read is compared,
and what was changed is read again at once, over whichever connection. Between steps versions are
taken, cloned, rolled back, cut off and deleted.
"""

import random
import subprocess
import sys
import time

import nbd

CHUNK = 4096
SECTOR = 512
HOT_CHUNKS = 64
IN_FLIGHT_MAX = 24
LONG_CHUNKS_MAX = 128
CONNECTIONS_MAX = 3
SNAPSHOTS_MAX = 4
CLONES_MAX = 4
# Of the steps, behind which a version is taken, cloned, rolled back and so on.
CHANGE_SHARE = 0.03
MIB = 1 << 20
# The command's exit code while a client is connected, and how often it is told again.
IN_USE = 4
PATIENCE = 1000


class Contents:
    """What is written: most of it what others write too, half noise; some of it zeros."""

    def __init__(self):
        dice = random.Random(7)
        self.shared = [dice.randbytes(CHUNK // 2) + bytes(CHUNK // 2) for _ in range(1000)]

    def make(self, dice, length):
        made = bytearray()
        while len(made) < length:
            kind = dice.random()
            if kind < 0.6:
                made += dice.choice(self.shared)
            elif kind < 0.7:
                made += bytes(CHUNK)
            else:
                made += dice.randbytes(CHUNK * 3 // 4) + bytes(CHUNK // 4)
        return made[:length]


class Version:
    """A volume or snapshot, what it holds, and who is connected to it."""

    def __init__(self, name, known):
        self.name = name
        self.known = known
        self.is_snapshot = "@" in name
        self.connections = []

    def connect(self, socket, count):
        for _ in range(count):
            handle = nbd.NBD()
            handle.connect_uri("nbd+unix:///%s?socket=%s" % (self.name, socket))
            self.connections.append(handle)

    def disconnect(self):
        for handle in self.connections:
            if not self.is_snapshot:
                handle.flush()
            handle.shutdown()
        self.connections = []

    def compare(self, offset, found, after):
        wanted = self.known[offset : offset + len(found)]
        if found != wanted:
            at = next(at for at in range(len(found)) if found[at] != wanted[at])
            at -= at % SECTOR
            sys.exit("%s at %d, in a read of %d bytes at %d %s: %s instead of %s" % (
                self.name, offset + at, len(found), offset, after,
                found[at : at + 16].hex(), wanted[at : at + 16].hex()))

    def compare_all(self, after):
        for offset in range(0, len(self.known), MIB):
            length = min(MIB, len(self.known) - offset)
            self.compare(offset, self.connections[0].pread(length, offset), after)


class Request:
    """One request of a burst.

    Its bytes are given as they are: of an `nbd.Buffer` libnbd (1.14) never lets go.
    """

    def __init__(self, version, dice, contents, offset, length, only_read):
        self.version, self.offset, self.length = version, offset, length
        self.handle = dice.choice(version.connections)
        kind = 0 if only_read else dice.random()
        self.changes = kind >= 0.45
        if not self.changes:
            self.found = bytearray(length)
            self.cookie = self.handle.aio_pread(self.found, offset)
        elif kind < 0.9:
            self.data = contents.make(dice, length)
            flags = nbd.CMD_FLAG_FUA if dice.random() < 0.03 else 0
            self.cookie = self.handle.aio_pwrite(self.data, offset, flags=flags)
        else:
            self.data = bytes(length)
            send = dice.choice([self.handle.aio_trim, self.handle.aio_zero])
            self.cookie = send(length, offset)

    def finish(self):
        while not self.handle.aio_command_completed(self.cookie):
            self.handle.poll(-1)
        if self.changes:
            self.version.known[self.offset : self.offset + self.length] = self.data

    def judge(self, dice):
        """The requests that this took: none more for what was a read."""
        if not self.changes:
            self.version.compare(self.offset, self.found, "beside others")
            return 0
        if dice.random() < 0.7:
            return 0
        found = dice.choice(self.version.connections).pread(self.length, self.offset)
        self.version.compare(self.offset, found, "right after its write")
        return 1


class Family:
    def __init__(self, tamis, store, socket, name, size, seed):
        self.tamis, self.store, self.socket = tamis, store, socket
        self.chunks = size // CHUNK
        self.dice = random.Random(seed)
        self.contents = Contents()
        self.named = 0
        self.snapshots = {}
        self.tell("volume", "create", name, "--size", str(size))
        self.versions = [Version(name, bytearray(size))]
        self.changes = [self.take, self.clone, self.show, self.forget, self.roll_back,
                        self.cut_off, self.choose_dedup]

    def tell(self, *words):
        """Tells the server to change a version; one that was just left may still be in use."""
        verbs = 1 if words[0] == "clone" else 2
        command = [self.tamis, *words[:verbs], self.store, *words[verbs:]]
        for _ in range(PATIENCE):
            told = subprocess.run(command, capture_output=True, text=True)
            if told.returncode == 0:
                return
            if told.returncode != IN_USE:
                break
            time.sleep(0.01)
        sys.exit("%s ended with %d: %s" % (" ".join(command), told.returncode, told.stderr))

    def go(self, steps):
        """The requests that these steps took."""
        requests = 0
        for version in self.versions:
            self.join(version)
        self.dice.choice(self.versions).compare_all("after a restart")
        for _ in range(steps):
            requests += self.burst(self.dice.choice(self.versions))
            if self.dice.random() < CHANGE_SHARE:
                self.dice.choice(self.changes)()
        for version in self.versions:
            version.disconnect()
        return requests

    def burst(self, version):
        """The requests that it took."""
        only_read = version.is_snapshot or self.dice.random() < 0.35
        ranges = self.hot_ranges() if self.dice.random() < 0.7 else self.far_ranges()
        requests = [
            Request(version, self.dice, self.contents, offset, length, only_read)
            for offset, length in ranges
        ]
        for request in requests:
            request.finish()
        return len(requests) + sum(request.judge(self.dice) for request in requests)

    def hot_ranges(self):
        """Chunks, and parts of them, of the first so many of the volume or of its last."""
        start = self.dice.choice([0, self.chunks - HOT_CHUNKS])
        count = self.dice.randint(1, IN_FLIGHT_MAX)
        for chunk in self.dice.sample(range(start, start + HOT_CHUNKS), count):
            yield self.part_of(chunk, 1)

    def far_ranges(self):
        """Up to so many chunks anywhere; the volume is cut so that no two meet."""
        count = self.dice.randint(1, IN_FLIGHT_MAX)
        for place in self.dice.sample(range(self.chunks // LONG_CHUNKS_MAX), count):
            length = self.dice.choice([1, 1, 2, 8, 32, LONG_CHUNKS_MAX])
            yield self.part_of(place * LONG_CHUNKS_MAX, length)

    def part_of(self, chunk, count):
        offset, length = chunk * CHUNK, count * CHUNK
        if self.dice.random() < 0.2:
            skipped = SECTOR * self.dice.randrange(CHUNK // SECTOR)
            offset, length = offset + skipped, length - skipped
            length -= SECTOR * self.dice.randrange(min(8, length // SECTOR))
        return offset, length

    def new_name(self):
        self.named += 1
        return "%s-%d" % (self.versions[0].name, self.named)

    def volumes(self):
        return [version for version in self.versions if not version.is_snapshot]

    def snapshots_of(self, version):
        """Their names, the newest last."""
        return [name for name in self.snapshots if name.startswith(version.name + "@")]

    def join(self, version):
        version.connect(self.socket, self.dice.randint(1, CONNECTIONS_MAX))

    def add(self, version):
        self.join(version)
        self.versions.append(version)

    def remove(self, version):
        version.disconnect()
        self.versions.remove(version)

    def take(self):
        if len(self.snapshots) < SNAPSHOTS_MAX:
            version = self.dice.choice(self.volumes())
            name = "%s@%s" % (version.name, self.new_name())
            self.tell("snapshot", "create", name)
            self.snapshots[name] = bytes(version.known)

    def clone(self):
        if self.snapshots and len(self.volumes()) <= CLONES_MAX:
            snapshot, name = self.dice.choice(sorted(self.snapshots)), self.new_name()
            self.tell("clone", snapshot, name)
            self.add(Version(name, bytearray(self.snapshots[snapshot])))

    def show(self):
        """Clients connect to a snapshot."""
        shown = {version.name for version in self.versions}
        hidden = sorted(set(self.snapshots) - shown)
        if hidden:
            name = self.dice.choice(hidden)
            self.add(Version(name, bytearray(self.snapshots[name])))

    def forget(self):
        """A clone is deleted with its snapshots, or a snapshot alone."""
        clones = self.volumes()[1:]
        if clones and self.dice.random() < 0.5:
            version = self.dice.choice(clones)
            for name in self.snapshots_of(version):
                self.delete_snapshot(name)
            version.compare_all("before it is deleted")
            self.remove(version)
            self.tell("volume", "delete", version.name, "--yes")
        elif self.snapshots:
            self.delete_snapshot(self.dice.choice(sorted(self.snapshots)))

    def delete_snapshot(self, name):
        for version in [version for version in self.versions if version.name == name]:
            version.compare_all("before it is deleted")
            self.remove(version)
        self.tell("snapshot", "delete", name, "--yes")
        del self.snapshots[name]

    def roll_back(self):
        """A volume goes back to its newest snapshot, if it has any."""
        for version in self.volumes():
            for name in self.snapshots_of(version)[-1:]:
                version.disconnect()
                self.tell("snapshot", "rollback", name, "--yes")
                version.known = bytearray(self.snapshots[name])
                self.join(version)
                version.compare_all("after it was rolled back")
                return

    def cut_off(self):
        """A volume loses what is behind some sector, and has its old size again, with zeros."""
        version = self.dice.choice(self.volumes())
        size = len(version.known)
        kept = SECTOR * self.dice.randrange(1, size // SECTOR)
        version.disconnect()
        self.tell("volume", "resize", version.name, "--size", str(kept), "--shrink", "--yes")
        self.tell("volume", "resize", version.name, "--size", str(size))
        version.known[kept:] = bytes(size - kept)
        self.join(version)
        version.compare_all("after it was cut off at %d" % kept)

    def choose_dedup(self):
        version = self.dice.choice(self.volumes())
        self.tell("volume", "set", version.name, "--dedup", self.dice.choice(["on", "off", "auto"]))

    def read_all(self):
        for name, known in self.snapshots.items():
            if all(version.name != name for version in self.versions):
                self.versions.append(Version(name, known))
        for version in self.versions:
            version.connect(self.socket, 1)
            version.compare_all("at the end")
            version.disconnect()


def main(tamis, store, socket, name, size, seed):
    family = Family(tamis, store, socket, name, int(size), int(seed))
    for order in sys.stdin:
        print(family.go(int(order)), flush=True)
    family.read_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
