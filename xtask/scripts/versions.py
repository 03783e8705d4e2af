"""Snapshots of a volume that is being written, and trims of a large one beside another client.

usage: versions.py snapshots TAMIS STORE URI VOLUME COUNT SEED   takes and deletes so many
       versions.py fill URI MIB                                  writes so much, repeated each MiB
       versions.py trim URI MIB OTHER                            trims it while OTHER is written

`snapshots` has writes in flight whenever a snapshot is taken, and deletes them all in an order that
follows from SEED. `fill` leaves nothing unmapped. `trim` prints the latencies of both clients, and
fails when either waited: for much longer than any machine does by itself.
"""

import random
import subprocess
import sys
import threading
import time

import nbd

MIB = 1 << 20
CHUNK = 4096
IN_FLIGHT = 16
WRITES_PER_SNAPSHOT = 50
# Of one request: of the trim, and of the other client meanwhile. By far more than either takes.
TRIM_SECONDS_MAX = 5
OTHER_SECONDS_MAX = 2
# An NBD request says how long it is in 32 bits.
TRIM_BYTES_MAX = (4 << 30) - MIB


def connect(uri):
    handle = nbd.NBD()
    handle.connect_uri(uri)
    return handle


def milliseconds(seconds):
    return "%.1f ms" % (seconds * 1000)


def share(latencies, part):
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def start_write(handle, buffer, at):
    """Starts a write once few enough are in flight; one that fails ends the script."""
    while handle.aio_in_flight() >= IN_FLIGHT:
        handle.poll(-1)

    def ended(error):
        if error.value != 0:
            sys.exit("a write at %d failed with error %d" % (at, error.value))
        return 1

    handle.aio_pwrite(buffer, at, ended)


def write_some(handle, dice, count, chunks):
    """Starts random writes; the last of them are in flight when this returns."""
    for _ in range(count):
        buffer = nbd.Buffer.from_bytearray(bytearray(dice.randbytes(CHUNK)))
        start_write(handle, buffer, dice.randrange(chunks) * CHUNK)


def settle(handle):
    while handle.aio_in_flight() > 0:
        handle.poll(-1)


def snapshots(tamis, store, uri, volume, count, seed):
    dice = random.Random(int(seed))
    handle = connect(uri)
    chunks = handle.get_size() // 4 // CHUNK
    for at in range(0, chunks * CHUNK, MIB):
        handle.pwrite(dice.randbytes(MIB), at)
    names = ["%s@s%d" % (volume, number) for number in range(int(count))]
    took = []
    for name in names:
        write_some(handle, dice, WRITES_PER_SNAPSHOT, chunks)
        begun = time.monotonic()
        subprocess.run([tamis, "snapshot", "create", store, name], check=True,
                       stdout=subprocess.DEVNULL)
        took.append(time.monotonic() - begun)
    settle(handle)
    dice.shuffle(names)
    for name in names:
        write_some(handle, dice, 1, chunks)
        subprocess.run([tamis, "snapshot", "delete", store, name, "--yes"], check=True,
                       stdout=subprocess.DEVNULL)
    settle(handle)
    handle.flush()
    handle.shutdown()
    print("%s snapshots, the command included: median %s, p99 %s" % (
        count, milliseconds(share(took, 0.5)), milliseconds(share(took, 0.99))))


def fill(uri, mebibytes):
    handle = connect(uri)
    # One for all: libnbd keeps every buffer that it was given for as long as the connection lives.
    buffer = nbd.Buffer.from_bytearray(bytearray(random.Random(1).randbytes(MIB)))
    for number in range(int(mebibytes)):
        start_write(handle, buffer, number * MIB)
    settle(handle)
    handle.flush()
    handle.shutdown()


class Other(threading.Thread):
    """A client that writes one chunk after the other, until it is told to end."""

    def __init__(self, uri):
        super().__init__(daemon=True)
        self.handle, self.latencies, self.over = connect(uri), [], threading.Event()

    def run(self):
        dice = random.Random(2)
        chunks = self.handle.get_size() // CHUNK
        while not self.over.is_set():
            data, at = dice.randbytes(CHUNK), dice.randrange(chunks) * CHUNK
            begun = time.monotonic()
            self.handle.pwrite(data, at)
            self.latencies.append(time.monotonic() - begun)

    def end(self):
        self.over.set()
        self.join()
        self.handle.flush()
        self.handle.shutdown()


def trim(uri, mebibytes, other_uri):
    handle, other = connect(uri), Other(other_uri)
    other.start()
    time.sleep(8)
    before = len(other.latencies)
    took = []
    length = int(mebibytes) * MIB
    for at in range(0, length, TRIM_BYTES_MAX):
        begun = time.monotonic()
        handle.trim(min(TRIM_BYTES_MAX, length - at), at)
        took.append(time.monotonic() - begun)
    time.sleep(12)
    other.end()
    handle.shutdown()
    quiet, beside = other.latencies[:before], other.latencies[before:]
    print("%s MiB trimmed by %d requests in %s, the longest %s" % (
        mebibytes, len(took), milliseconds(sum(took)), milliseconds(max(took))))
    print("the other client's p99: %s before, %s beside; its slowest: %s before, %s beside" % (
        milliseconds(share(quiet, 0.99)), milliseconds(share(beside, 0.99)),
        milliseconds(max(quiet)), milliseconds(max(beside))))
    if max(took) > TRIM_SECONDS_MAX:
        sys.exit("a trim took %s" % milliseconds(max(took)))
    if max(beside) > OTHER_SECONDS_MAX:
        sys.exit("the other client waited %s beside the trims" % milliseconds(max(beside)))


VERBS = {"snapshots": snapshots, "fill": fill, "trim": trim}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
