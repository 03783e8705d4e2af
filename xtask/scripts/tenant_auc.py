#!/usr/bin/env python3
"""Tries to learn from the time of a set whether another tenant has stored the same value.

    cargo build --release -p cli
    tenant_auc.py --target target/release --dir /var/tmp/auc [--sets N]

Tenant `owner` stores values. Tenant `spy` sets, in random order, as many that the owner has and
that nobody has, and takes the time of each answer. Printed is the area under the ROC curve of the
classifier that guesses from the time (0.5: nothing is learnt; 1: everything), for the whole set of
times and for its halves; beside it that of a spy who sets values of its own a second time, who may
learn what it has stored. Exit code 1: the first is over 0.55.
"""

import bisect
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time

import local_servers

VALUE_BYTES = 4096
AUC_MAX = 0.55


def connect(port, account):
    server = local_servers.connect(port)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    said = f"{account['access_key']} {account['secret']}".encode()
    server.sendall(b"set auth 0 0 %d\r\n%s\r\n" % (len(said), said))
    assert server.recv(100) == b"STORED\r\n", "the account is refused"
    return server


def store(server, key, value):
    """Sets a value, and returns nanoseconds until the answer."""
    said = b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value)
    begun = time.perf_counter_ns()
    server.sendall(said)
    answer = server.recv(100)
    took = time.perf_counter_ns() - begun
    assert answer == b"STORED\r\n", answer
    return took


def auc(positive, negative):
    """The part of pairs in which the positive time is the smaller; ties count half."""
    negative = sorted(negative)
    smaller = 0
    for it in positive:
        low, high = bisect.bisect_left(negative, it), bisect.bisect_right(negative, it)
        smaller += len(negative) - high + (high - low) / 2
    area = smaller / (len(positive) * len(negative))
    return max(area, 1 - area)


def times(spy, known, dice, count, name):
    kinds = [True, False] * (count // 2)
    dice.shuffle(kinds)
    took = {True: [], False: []}
    # Each known value once: the second time it is the spy's own. All are made before the first is
    # timed, so that the client is as busy with one as with the other.
    unused = {True: iter(known), False: iter([dice.randbytes(VALUE_BYTES) for _ in known])}
    for number, is_known in enumerate(kinds):
        took[is_known].append(store(spy, f"{name}-{number}", next(unused[is_known])))
    return took


def main():
    arguments = local_servers.parser(__doc__)
    arguments.add_argument("--sets", type=int, default=100_000)
    given = arguments.parse_args()
    tamis, place = f"{given.target}/tamis", f"{given.dir}/store"
    shutil.rmtree(given.dir, ignore_errors=True)
    os.makedirs(given.dir)

    def run(*words):
        done = subprocess.run([tamis, *words], check=True, capture_output=True, text=True)
        return done.stdout

    run("init", place, "--capacity", "8G")
    accounts = {}
    for name in ("owner", "spy"):
        made = run("account", "create", place, name, "--tenant", "--write", f"{name}-*", "--json")
        accounts[name] = json.loads(made)
        domain = accounts[name].get("domain") or name
        run("bucket", "create", place, f"{name}-bucket", "--domain", domain)
        accounts[name]["access_key"] += f"@{name}-bucket"
    port = local_servers.free_port()
    serve = [tamis, "serve", place, "--memcached", f"tcp:127.0.0.1:{port}", "--memory", "1G"]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
    try:
        owner, spy = (connect(port, accounts[name]) for name in ("owner", "spy"))
        dice = random.Random(7)
        known = [dice.randbytes(VALUE_BYTES) for _ in range(given.sets // 2)]
        for number, value in enumerate(known):
            store(owner, f"known-{number}", value)
        times(spy, [dice.randbytes(VALUE_BYTES) for _ in range(1_000)], dice, 2_000, "warm")
        took = times(spy, known, dice, given.sets, "other")
        area = auc(took[True], took[False])
        halves = [auc(took[True][part::2], took[False][part::2]) for part in range(2)]
        own = times(spy, known, dice, given.sets // 4, "own")
        print(f"another tenant's value: AUC {area:.4f} (halves {halves[0]:.4f}, {halves[1]:.4f})")
        print(f"the spy's own value:    AUC {auc(own[True], own[False]):.4f}")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(given.dir, ignore_errors=True)
    sys.exit(area > AUC_MAX)


main()
