#!/usr/bin/env python3
"""Compares a server with an emulated accelerator (decision 077) with one without, on real data.

    accelerator_beside.py --tamis target/release/tamis --dir /var/tmp/acc IMAGE... [--rounds 5]
                          [--device emulated:batch=64,queue=8,hash=2,compress=2]...

Each round makes a new store for each way, in turn, and writes the images over NBD, each into a
volume of its own, in requests of 128 KiB of which four are in flight. A write's time is from before
it is sent until it is answered. Processor time is the server's, user and system, until its flush is
answered. Images of real files in which versions share blocks are made by
`mke2fs -q -t ext4 -E no_copy_xattrs -U UUID -d TREE IMAGE 512M`.
"""

import argparse
import collections
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import time

REQUEST = 128 << 10
IN_FLIGHT = 4
WRITE, DISCONNECT, FLUSH = 1, 2, 3
OPTION_GO = 7


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Client:
    """A connection to one volume, by the NBD protocol."""

    def __init__(self, path, volume):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.receive(18)
        name = volume.encode()
        asked = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self.socket.sendall(struct.pack(">I", 3))
        self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", OPTION_GO, len(asked)) + asked)
        kind = 0
        while kind != 1:
            _, _, kind, length = struct.unpack(">QIII", self.receive(20))
            self.receive(length)
            if kind >= 1 << 31:
                raise SystemExit(f"the server refuses {volume}")
        self.sent = collections.OrderedDict()
        self.took = []

    def receive(self, length):
        got = bytearray()
        while len(got) < length:
            piece = self.socket.recv(length - len(got))
            if not piece:
                raise SystemExit("the server went away")
            got += piece
        return bytes(got)

    def send(self, kind, number, offset=0, payload=b"", length=0):
        head = struct.pack(">IHHQQI", 0x25609513, 0, kind, number, offset, length or len(payload))
        self.sent[number] = time.monotonic_ns()
        self.socket.sendall(head + payload)

    def answer(self):
        _, error, number = struct.unpack(">IIQ", self.receive(16))
        if error:
            raise SystemExit(f"a request failed with {error}")
        return time.monotonic_ns() - self.sent.pop(number)

    def write(self, image):
        """Writes a file from the beginning on, and flushes."""
        number = 0
        with open(image, "rb") as file:
            while payload := file.read(REQUEST):
                while len(self.sent) >= IN_FLIGHT:
                    self.took.append(self.answer())
                self.send(WRITE, number, number * REQUEST, payload)
                number += 1
        while self.sent:
            self.took.append(self.answer())
        self.send(FLUSH, number)
        self.answer()
        return self.took


class Served:
    """A new store with a volume for each image, and its server."""

    def __init__(self, options, device):
        self.path = os.path.join(options.dir, "store")
        self.socket = os.path.join(options.dir, "nbd.sock")
        self.tamis = options.tamis
        shutil.rmtree(self.path, ignore_errors=True)
        run(self.tamis, "init", self.path, "--capacity", "8G")
        for number, image in enumerate(options.images):
            size = str(-(-os.path.getsize(image) // 512) * 512)
            run(self.tamis, "volume", "create", self.path, f"v{number}", "--size", size)
        words = ["--accelerator", device] if device else []
        self.server = subprocess.Popen(
            [self.tamis, "serve", self.path, "--memory", "512M", "--poll-us", "0"]
            + ["--nbd", f"unix:{self.socket}", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        while not self.answers():
            if self.server.poll() is not None:
                raise SystemExit("the server ended")
            time.sleep(0.05)

    def answers(self):
        try:
            socket.socket(socket.AF_UNIX).connect(self.socket)
            return True
        except OSError:
            return False

    def seconds(self):
        with open(f"/proc/{self.server.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stats(self):
        return json.loads(run(self.tamis, "stats", self.path, "--json"))

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()


def measure(options, device):
    """What one way came to."""
    served = Served(options, device)
    try:
        spent, begun, took = served.seconds(), time.monotonic(), []
        for number, image in enumerate(options.images):
            took += Client(served.socket, f"v{number}").write(image)
        passed, spent = time.monotonic() - begun, served.seconds() - spent
        stats = served.stats()
    finally:
        served.stop()
    mib = sum(map(os.path.getsize, options.images)) / (1 << 20)
    took.sort()
    rank = [took[int(part * (len(took) - 1))] / 1e6 for part in (0.5, 0.99)]
    found = {"mib_s": mib / passed, "mib_cpu_s": mib / spent, "p50_ms": rank[0], "p99_ms": rank[1]}
    stored = {key: stats["counters"][key] for key in ("chunks_duplicate", "chunks_unique")}
    found["frame_bytes"] = stats["written"]["new_frame_bytes"]
    if figures := stats.get("accelerator"):
        all_chunks = sum(stored.values())
        found["right"] = 100 * figures["predicted_ratio"]
        found["in_vain"] = 100 * figures["compressed_in_vain"] / all_chunks
        found["sent_twice"] = 100 * figures["sent_twice"] / all_chunks
        found["fill"] = 100 * figures["batch_fill_ratio"]
        found["hash_busy"] = 100 * figures["hash_busy_ratio"]
        found["compress_busy"] = 100 * figures["compress_busy_ratio"]
    return found | stored


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("images", nargs="+")
    parser.add_argument("--tamis", default="target/release/tamis")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", action="append")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    ways = ["", *(options.device or ["emulated:batch=64,queue=8,hash=4,compress=4"])]
    rounds = {way: [] for way in ways}
    loads = []
    for _ in range(options.rounds):
        for way in ways:
            rounds[way].append(measure(options, way))
            loads.append(os.getloadavg()[0])
    for way, found in rounds.items():
        print(way or "off")
        for name in found[0]:
            values = [one[name] for one in found]
            print(f"  {name}: {statistics.median(values):.2f} "
                  f"({min(values):.2f} to {max(values):.2f})")
    print(f"load {min(loads):.1f} to {max(loads):.1f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rounds": rounds, "loads": loads}, file, indent=1)


if __name__ == "__main__":
    main()
