#!/usr/bin/env python3
"""What a client with one connection gets beside another who asks for all he can.

    cargo build --release -p cli && cargo build --release -p memcached_door --example memcached_load
    tenants_beside.py --target target/release --dir /var/tmp/tenants [--rounds 5]

Victim and aggressor are tenants with a bucket each. The victim has one connection and one request
at a time; the aggressor, none, or four connections with 64 sets of 4 KiB in flight each. Clients
are in control groups of equal weight where the machine has those (root, cgroup v1 or v2). The table
has medians of the rounds for tamis and for Debian's memcached, which knows no tenants: the victim's
99th percentile in parts of what it is beside an idle aggressor, and its rate in parts of its share,
which is half of what it has alone.
"""

import json
import os
import shutil
import statistics
import subprocess
import time

from local_servers import free_port, parser, wait_for

KEYS = 5_000
CONNECTIONS, DEPTH = 4, 64
GROUPS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup")


def control_group(name):
    """A new control group of the usual weight; none where there are no control groups."""
    for root in GROUPS:
        group = f"{root}/tamis-{name}"
        try:
            os.makedirs(group, exist_ok=True)
            with open(f"{group}/cgroup.procs", "a", encoding="ascii"):
                return group
        except OSError:
            continue
    return None


class Clients:
    """Starts load for one server."""

    def __init__(self, load, port, accounts):
        self.load, self.port, self.accounts = load, port, accounts

    def start(self, tenant, verb, depth, requests):
        group = control_group(tenant)

        def enter():
            if group:
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as procs:
                    procs.write(str(os.getpid()))

        words = [self.load, f"127.0.0.1:{self.port}", verb, 4096, depth, requests, KEYS]
        environment = dict(os.environ)
        if self.accounts:
            environment["MEMCACHED_ACCOUNT"] = self.accounts[tenant]
        return subprocess.Popen(
            [str(word) for word in words],
            stdout=subprocess.PIPE,
            env=environment,
            preexec_fn=enter,  # pylint: disable=subprocess-popen-preexec-fn
        )

    def victim(self, verb, requests):
        said, _ = self.start("victim", verb, 1, requests).communicate()
        return json.loads(said)

    def beside_aggressor(self, verb, requests):
        many = 1 << 24
        aggressors = [
            self.start("aggressor", "set-unique", DEPTH, many) for _ in range(CONNECTIONS)
        ]
        time.sleep(1)
        try:
            return self.victim(verb, requests)
        finally:
            for aggressor in aggressors:
                assert aggressor.poll() is None, "an aggressor has given up"
                aggressor.kill()
                aggressor.wait()


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--requests", type=int, default=20_000)
    given = arguments.parse_args()
    tamis, load = f"{given.target}/tamis", f"{given.target}/examples/memcached_load"
    store = f"{given.dir}/store"
    shutil.rmtree(given.dir, ignore_errors=True)
    os.makedirs(given.dir)

    def run(*words):
        done = subprocess.run([tamis, *words], check=True, capture_output=True, text=True)
        return done.stdout

    run("init", store, "--capacity", "16G")
    accounts = {}
    for name in ("victim", "aggressor"):
        made = run("account", "create", store, name, "--tenant", "--write", f"{name}-*", "--json")
        made = json.loads(made)
        run("bucket", "create", store, f"{name}-b", "--domain", made.get("domain") or name)
        accounts[name] = f"{made['access_key']}@{name}-b {made['secret']}"
    ports = {"memcached": free_port(), "tamis": free_port()}
    user = ["-u", "root"] if os.geteuid() == 0 else []
    words = ["-l", "127.0.0.1", "-p", str(ports["memcached"]), "-m", "1024"]
    memcached = ["memcached", *words, "-t", str(os.cpu_count()), *user]
    serve = [tamis, "serve", store, "--memory", "1G"]
    serve += ["--memcached", f"tcp:127.0.0.1:{ports['tamis']}"]
    servers = [
        subprocess.Popen(memcached),
        subprocess.Popen(serve, stdout=subprocess.DEVNULL),
    ]
    try:
        clients = {}
        for name, port in ports.items():
            wait_for(port)
            clients[name] = Clients(load, port, accounts if name == "tamis" else None)
        measure(given, clients)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        shutil.rmtree(given.dir, ignore_errors=True)


def measure(given, clients):
    print(f"{'':16}{'alone':>26}{'beside':>26}{'p99':>8}{'of share':>10}")
    for verb in ("get", "set-unique"):
        found = {name: {"alone": [], "beside": []} for name in clients}
        for it in clients.values():
            it.victim("fill", KEYS)
        for number in range(given.rounds):
            for name in sorted(clients, reverse=number % 2 == 1):
                it, each = clients[name], found[name]
                each["alone"].append(it.victim(verb, given.requests))
                each["beside"].append(it.beside_aggressor(verb, given.requests))
        for name, each in found.items():
            median = {
                when: {
                    figure: statistics.median(one[figure] for one in rounds)
                    for figure in ("per_second", "p99_us")
                }
                for when, rounds in each.items()
            }
            alone, beside = median["alone"], median["beside"]
            line = f"{verb:11}{name:10}"
            for one in (alone, beside):
                line += f"{one['per_second']:9.0f}/s {one['p99_us']:9.1f} us"
            line += f"{beside['p99_us'] / alone['p99_us']:7.2f}x"
            line += f"{beside['per_second'] / (alone['per_second'] / 2):8.2f}x"
            print(line, flush=True)


main()
