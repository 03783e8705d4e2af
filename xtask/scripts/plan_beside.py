#!/usr/bin/env python3
"""Compares what `tamis plan --measure` says of a workload's cores with what a server took for it.

    plan_beside.py --tamis target/release/tamis --dir /var/tmp/plan [--rounds 3] [--mib 512]

Each workload is given to a new store by fio over NBD. The server's processor time, user and system,
until its flush is answered is divided by the chunks that were read and written. The plan is asked
for the same shares: the store's counters say how much was duplicate and how small the rest became.
The server sleeps at once when it has nothing to do, since looking for work is no work. CALIBRATED
are those whose figures the constants of room `plan` were chosen on; the others were not looked at.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import time

CHUNK = 4096
SHARES = ("reads", "duplicates", "compressed")
# Name, what fio does, bytes of a request, of which so many are in flight, percent of reads,
# percent of duplicates, percent that compression takes away.
CALIBRATED = [
    ("sequential writes, all new", "write", 1 << 20, 4, 0, 0, 50),
    ("sequential writes, most duplicate", "write", 1 << 20, 4, 0, 90, 50),
    ("sequential reads", "read", 1 << 20, 4, 100, 0, 50),
    ("scattered writes of 4 KiB", "randwrite", 4 << 10, 32, 0, 50, 50),
    ("scattered reads of 4 KiB", "randread", 4 << 10, 32, 100, 50, 50),
]
OTHERS = [
    ("sequential writes of 128 KiB, three quarters duplicate", "write", 128 << 10, 8, 0, 75, 50),
    ("sequential writes, little duplicate, well compressible", "write", 1 << 20, 4, 0, 20, 75),
    ("scattered, 70% reads, 16 KiB", "randrw", 16 << 10, 16, 70, 50, 50),
    ("scattered writes of 8 KiB, hardly compressible", "randwrite", 8 << 10, 32, 0, 40, 20),
]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Served:
    """A new store with one volume, and its server."""

    def __init__(self, options):
        self.options = options
        self.path = os.path.join(options.dir, "store")
        self.socket = os.path.join(options.dir, "nbd.sock")
        shutil.rmtree(self.path, ignore_errors=True)
        run(options.tamis, "init", self.path, "--capacity", "8G")
        run(options.tamis, "volume", "create", self.path, "v", "--size", f"{options.mib}M")
        self.server = subprocess.Popen(
            [options.tamis, "serve", self.path, "--memory", "512M", "--poll-us", "0"]
            + ["--nbd", f"unix:{self.socket}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        asked = ["nbdinfo", "--size", f"nbd+unix:///v?socket={self.socket}"]
        while subprocess.run(asked, capture_output=True).returncode:
            time.sleep(0.05)

    def seconds(self):
        with open(f"/proc/{self.server.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stats(self):
        return json.loads(run(self.options.tamis, "stats", self.path, "--json"))

    def fio(self, does, block, depth, reads, duplicates, compressible, seed):
        job = ["--name=v", "--ioengine=nbd", f"--uri=nbd+unix:///v?socket={self.socket}"]
        job += [f"--rw={does}", f"--bs={block}", f"--iodepth={depth}", f"--rwmixread={reads}"]
        job += [f"--dedupe_percentage={duplicates}", f"--size={self.options.mib}M"]
        job += [f"--buffer_compress_percentage={compressible}", f"--randseed={seed}"]
        job += ["--buffer_compress_chunk=4k", "--end_fsync=1", "--randrepeat=0"]
        said = run("fio", "--output-format=json", "--norandommap", *job)
        # What it has to remark comes before its JSON.
        done = json.loads(said[said.index("{"):])["jobs"][0]
        return [done[way]["io_bytes"] / CHUNK for way in ("read", "write")]

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()


def measure(options, workload, seed):
    """Nanoseconds of the server for a chunk, and the shares that were found."""
    _, does, block, depth, reads, duplicates, compressible = workload
    served = Served(options)
    try:
        if reads:
            served.fio("write", 1 << 20, 4, 0, duplicates, compressible, seed + 100)
        before, begun = served.stats(), served.seconds()
        read, written = served.fio(does, block, depth, reads, duplicates, compressible, seed)
        spent, after = served.seconds() - begun, served.stats()
    finally:
        served.stop()
    wrote = {key: after["written"][key] - before["written"][key] for key in after["written"]
             if key.endswith("_bytes")}
    new = wrote["client_bytes"] - wrote["duplicate_bytes"] - wrote["dropped_bytes"]
    looked_up = wrote["client_bytes"] - wrote["dropped_bytes"]
    return {
        "ns": 1e9 * spent / (read + written),
        "reads": read / (read + written),
        "duplicates": wrote["duplicate_bytes"] / looked_up if looked_up else duplicates / 100,
        "compressed": wrote["new_frame_bytes"] / new if new else (100 - compressible) / 100,
    }


def planned(options, workload, found):
    """What the plan says, in nanoseconds for a chunk, and the costs that it measured."""
    shares = [f"--{name}={round(100 * found[name])}" for name in SHARES]
    asked = ["--throughput", "1G", "--request", str(workload[2]), *shares]
    answer = json.loads(run(options.tamis, "plan", "--measure", "--json", *asked))
    chunks = answer["demand"]["bytes_per_second"] / CHUNK
    return 1e9 * answer["plans"][0]["needs"]["cores"] / chunks, answer["costs"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tamis", default="target/release/tamis")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    print("| workload | reads, duplicate, left | server, ns a chunk (all) | plan | plan / server |")
    print("|---|---|---|---|---|")
    kept = []
    for workload in CALIBRATED + OTHERS:
        rounds = [measure(options, workload, seed) for seed in range(1, options.rounds + 1)]
        middle = statistics.median(one["ns"] for one in rounds)
        plan, costs = planned(options, workload, rounds[0])
        shares = ", ".join(f"{100 * rounds[0][name]:.0f}%" for name in SHARES)
        every = ", ".join(f"{one['ns']:.0f}" for one in rounds)
        columns = [workload[0], shares, f"{middle:.0f} ({every})", f"{plan:.0f}"]
        print("|", " | ".join([*columns, f"{plan / middle:.2f}"]), "|", flush=True)
        kept.append({"workload": workload, "rounds": rounds, "plan_ns": plan, "costs": costs,
                     "load": os.getloadavg()[0]})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
