#!/usr/bin/env python3
"""What a set through memcached's door costs with a replica on a second server, beside one without.

    cargo build --release -p cli && cargo build --release -p memcached_door --example memcached_load
    replica_beside.py --target target/release --dir /var/tmp/replica [--rounds 5]

Two servers on this machine, a unix socket between them. The bucket `alone` has no replica, the
bucket `both` has one in step. Rounds alternate; the table has medians.
"""

import json
import os
import shutil
import statistics
import subprocess
import time

from local_servers import free_port, parser, wait_for

KEYS = 5_000


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--requests", type=int, default=12_000)
    given = arguments.parse_args()
    tamis, load = f"{given.target}/tamis", f"{given.target}/examples/memcached_load"
    first, second, socket = (f"{given.dir}/{name}" for name in ("first", "second", "socket"))
    shutil.rmtree(given.dir, ignore_errors=True)
    os.makedirs(given.dir)

    def run(*words):
        return subprocess.run([tamis, *words], check=True, capture_output=True, text=True).stdout

    for store in (first, second):
        run("init", store, "--capacity", "16G")
    for bucket in ("alone", "both"):
        run("bucket", "create", first, bucket)

    def start(*words):
        return subprocess.Popen([tamis, "serve", *words], stdout=subprocess.DEVNULL)

    replica = start(second, "--memory", "1G", "--replica-listen", f"unix:{socket}")
    try:
        while not os.path.exists(socket):
            time.sleep(0.05)
        primary = start(first, "--memory", "1G")
        words = [tamis, "bucket", "replicate", first, "both", "--to", f"unix:{socket}"]
        while subprocess.run(words, capture_output=True, check=False).returncode != 0:
            time.sleep(0.1)
        primary.terminate()
        primary.wait()

        def one(bucket, depth):
            """A server for one bucket, so that both have the same one in turn."""
            port = free_port()
            door = ["--memcached", f"tcp:127.0.0.1:{port}", "--memcached-bucket", bucket]
            server = start(first, "--memory", "1G", *door)
            try:
                wait_for(port)
                words = [load, f"127.0.0.1:{port}", "set-unique", 4096, depth]
                words = [str(word) for word in [*words, given.requests, KEYS]]
                return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
            finally:
                server.terminate()
                server.wait()

        print(f"{'':14}{'alone':>24}{'with a replica':>24}{'rate':>8}{'p50':>8}")
        for depth in (1, 16):
            found = {"alone": [], "both": []}
            for number in range(given.rounds):
                for bucket in sorted(found, reverse=number % 2 == 1):
                    found[bucket].append(one(bucket, depth))
            line = f"{depth:3} at once   "
            medians = {}
            for bucket, rounds in found.items():
                medians[bucket] = {
                    figure: statistics.median(each[figure] for each in rounds)
                    for figure in ("per_second", "p50_us")
                }
                line += "{per_second:12.0f}/s {p50_us:6.1f} us".format(**medians[bucket])
            for figure in ("per_second", "p50_us"):
                line += f"{medians['both'][figure] / medians['alone'][figure]:7.2f}x"
            print(line, flush=True)
    finally:
        replica.terminate()
        replica.wait()
        shutil.rmtree(given.dir, ignore_errors=True)


main()
