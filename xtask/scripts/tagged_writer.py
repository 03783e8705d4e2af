"""Writes numbered chunks over several connections until the server dies, and logs what it does.

usage: tagged_writer.py URI...

Each line of standard input, `SEED FIRST-NUMBER CONNECTIONS`, makes it connect (again) and write.

The log (see acceptance/prefix.rs) goes to standard output, a line per event, each written in one
piece: what is sent is logged before it is sent, what is answered after it is answered. `B` says
that every connection is broken.
"""

import errno
import itertools
import os
import random
import sys
import threading

import nbd
import tagged

SHARED_SHARE = 0.2
ZERO_SHARE = 0.05
FLUSH_SHARE = 0.03
FUA_SHARE = 0.02
CHUNKS_MAX = 16
IN_FLIGHT_MAX = 8
# What a write in flight is told when its connection breaks.
BROKEN = {errno.ENOTCONN, errno.ESHUTDOWN, errno.ECONNRESET, errno.EPIPE}


def log(line):
    os.write(1, (line + "\n").encode())


class Connection:
    """One connection with a range of chunks of its own."""

    def __init__(self, index, uri, dice, numbers, in_flight_max):
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.volume = tagged.volume_of(uri)
        self.first = index * tagged.CHUNKS_PER_CONNECTION
        self.dice = dice
        self.numbers = numbers
        self.in_flight_max = in_flight_max
        # Errors of requests: a connection that breaks has its own, a live server has none.
        self.refusals = []

    def run(self):
        """Batches of writes, each waited for before the next, until the connection breaks."""
        try:
            while True:
                places = self.free_places()
                for _ in range(self.dice.randint(1, self.in_flight_max)):
                    self.write(places)
                while self.handle.aio_in_flight() > 0:
                    self.handle.poll(-1)
                if self.dice.random() < FLUSH_SHARE:
                    self.flush()
        except nbd.Error as error:
            # A connection that broke has all kinds of errors for who goes on using it.
            if not (self.handle.aio_is_dead() or self.handle.aio_is_closed()):
                self.refusals.append(error.errnum)

    def free_places(self):
        """Ranges of chunks that do not touch: no two writes in flight meet in one place."""
        ranges = tagged.CHUNKS_PER_CONNECTION // CHUNKS_MAX
        return [r * CHUNKS_MAX for r in self.dice.sample(range(ranges), IN_FLIGHT_MAX)]

    def write(self, places):
        number = next(self.numbers)
        count = self.dice.randint(1, CHUNKS_MAX)
        first = self.first + places.pop() + self.dice.randint(0, CHUNKS_MAX - count)
        if self.dice.random() < ZERO_SHARE:
            self.send_zeros(number, first, count)
        else:
            self.send_data(number, first, count)

    def send_data(self, number, first, count):
        names, data = [], bytearray()
        for chunk in range(first, first + count):
            if self.dice.random() < SHARED_SHARE:
                pattern = self.dice.randrange(tagged.PATTERNS)
                names.append("s%d" % pattern)
                data += tagged.shared(pattern)
            else:
                names.append("u%d" % number)
                data += tagged.unique(number, chunk, self.volume)
        durable = self.dice.random() < FUA_SHARE
        if durable:
            log("F %d" % number)
        log("W %d %s %d %s" % (number, self.volume, first, " ".join(names)))
        flags = nbd.CMD_FLAG_FUA if durable else 0
        # Of an `nbd.Buffer` libnbd (1.14) never lets go; the callback keeps these plain bytes.
        answered = lambda error, _kept=data: self.answered(number, durable, error)
        self.handle.aio_pwrite(data, first * tagged.CHUNK, answered, flags)

    def send_zeros(self, number, first, count):
        log("W %d %s %d %s" % (number, self.volume, first, " ".join(["z"] * count)))
        offset, length = first * tagged.CHUNK, count * tagged.CHUNK
        send = self.dice.choice([self.handle.aio_trim, self.handle.aio_zero])
        send(length, offset, lambda error: self.answered(number, False, error))

    def answered(self, number, durable, error):
        if error.value != 0:
            self.refusals.append(error.value)
            return 1
        if durable:
            log("D %d" % number)
        log("A %d" % number)
        if durable:
            log("G %d" % number)
        return 1

    def flush(self):
        number = next(self.numbers)
        log("F %d" % number)
        self.handle.flush()
        log("G %d" % number)


def write_until_broken(seed, first_number, connections, uris):
    # One connection waits for every answer: what survives is then a prefix to the letter.
    in_flight_max = 1 if connections == 1 else IN_FLIGHT_MAX
    numbers = itertools.count(first_number)
    connections_made, threads = [], []
    for index in range(connections):
        dice = random.Random(seed * 1000 + index)
        uri = uris[(seed + index) % len(uris)]
        connection = Connection(index, uri, dice, numbers, in_flight_max)
        connections_made.append(connection)
        threads.append(threading.Thread(target=connection.run))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = {code for made in connections_made for code in made.refusals} - BROKEN
    if refused:
        names = ", ".join(sorted(errno.errorcode.get(code, str(code)) for code in refused))
        sys.exit("the server refused a legal request: %s" % names)


def main():
    for order in sys.stdin:
        seed, first_number, connections = (int(word) for word in order.split())
        write_until_broken(seed, first_number, connections, sys.argv[1:])
        log("B")


if __name__ == "__main__":
    main()
