#!/usr/bin/env python3
"""Measures `tamis serve --memcached` beside Debian's memcached: one client, two depths, two sizes.

    cargo build --release -p cli && cargo build --release -p memcached_door --example memcached_load
    memcached_beside.py --target target/release --dir /var/tmp/beside [--rounds 5] [--requests N]

Both servers run all the time, each with as many threads as the machine has processors, and a round
asks one after the other the same. The table has medians of the rounds, and what tamis does in parts
of what memcached does. `--model PROGRAM` measures another server instead, which is started with a
port (`examples/model_door`, say).
"""

import json
import os
import shutil
import statistics
import subprocess

from local_servers import free_port, parser, wait_for

KEYS = 10_000
SIZES = (512, 4096)
DEPTHS = (1, 16)
VERBS = ("get", "set-unique", "set-duplicate")


def memory_bytes(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        lines = [line for line in status if line.startswith("RssAnon:")]
    return int(lines[0].split()[1]) << 10


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--requests", type=int, default=64_000)
    arguments.add_argument("--memory", default="2G")
    arguments.add_argument("--model")
    arguments.add_argument("--sync", action="store_true")
    given = arguments.parse_args()
    tamis, load = f"{given.target}/tamis", f"{given.target}/examples/memcached_load"
    store = f"{given.dir}/store"
    shutil.rmtree(given.dir, ignore_errors=True)
    os.makedirs(given.dir)
    ports = {"memcached": free_port(), "tamis": free_port()}
    user = ["-u", "root"] if os.geteuid() == 0 else []
    threads = str(os.cpu_count())
    memcached = ["memcached", "-l", "127.0.0.1", "-p", str(ports["memcached"]), "-m", "2048"]
    memcached += ["-t", threads, "-I", "1m", *user]
    if given.model:
        serve = [given.model, str(ports["tamis"])]
    else:
        make = [["init", store, "--capacity", "20G"], ["bucket", "create", store, "cache"]]
        for words in make:
            subprocess.run([tamis, *words], check=True, stdout=subprocess.DEVNULL)
        serve = [tamis, "serve", store, "--memory", given.memory, "--memcached-bucket", "cache"]
        serve += ["--memcached", f"tcp:127.0.0.1:{ports['tamis']}"] + ["--sync"] * given.sync
    servers = {
        "memcached": subprocess.Popen(memcached),
        "tamis": subprocess.Popen(serve, stdout=subprocess.DEVNULL),
    }
    try:
        for port in ports.values():
            wait_for(port)
        measure(given, load, ports, servers)
    finally:
        for server in servers.values():
            server.terminate()
            server.wait()
        shutil.rmtree(given.dir, ignore_errors=True)


def measure(given, load, ports, servers):
    def ask(name, verb, size, depth, requests):
        words = [load, f"127.0.0.1:{ports[name]}", verb, size, depth, requests, KEYS]
        words = [str(word) for word in words]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)

    print(f"{'':34}{'memcached':>30}{'tamis':>30}{'per s':>8}{'p50':>7}{'p99':>7}")
    for size in SIZES:
        before = {name: memory_bytes(server) for name, server in servers.items()}
        for name in ports:
            ask(name, "fill", size, 16, KEYS)
        each = {name: (memory_bytes(servers[name]) - before[name]) / KEYS for name in ports}
        each = {name: round(each) for name, each in each.items()}
        print(f"{size:5} B: bytes of memory a key and value: {each}")
        for verb in VERBS:
            for depth in DEPTHS:
                rounds = {name: [] for name in ports}
                for name in ports:
                    ask(name, verb, size, depth, given.requests // 8)
                for number in range(given.rounds):
                    for name in sorted(ports, reverse=number % 2 == 1):
                        rounds[name].append(ask(name, verb, size, depth, given.requests))
                median = {
                    name: {
                        figure: statistics.median(one[figure] for one in rounds[name])
                        for figure in ("per_second", "p50_us", "p99_us")
                    }
                    for name in ports
                }
                one, other = median["memcached"], median["tamis"]
                line = f"{verb:14} {size:5} B, {depth:2} at once"
                for it in (one, other):
                    line = f"{line:34}" if it is one else line
                    line += f"{it['per_second']:9.0f}/s"
                    line += f"{it['p50_us']:8.1f}{it['p99_us']:8.1f} us"
                ratio = {figure: other[figure] / one[figure] for figure in one}
                line += f"{ratio['per_second']:8.2f}x"
                line += f"{ratio['p50_us']:6.2f}x{ratio['p99_us']:6.2f}x"
                print(line, flush=True)


main()
