#!/usr/bin/env python3
"""Measures `tamis serve --s3` beside MinIO: requests a second of the server's processor time.

    s3_beside.py --tamis target/release/tamis --minio minio --dir /var/tmp/beside [--rounds 5]

Both servers answer a PUT when its bytes are durable. They run one after the other in each round,
with the same requests from the same clients over loopback, signed with AWS Signature Version 4 and
the SHA-256 of each body, as SDKs sign over plain HTTP. Half of each body's bytes compress away, and
no two bodies share a chunk. The processor time is that of the server's process, so what the clients
take does not count. The table has medians of the rounds.
"""

import argparse
import concurrent.futures as futures
import datetime
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse
import xml.etree.ElementTree as xml

ACCESS, SECRET = "benchmark", "benchmark-secret-key"
KIB, MIB = 1 << 10, 1 << 20
# Name, bytes of a body, requests in a round, clients at once.
SIZES = [("4 KiB", 4 * KIB, 4000, 16), ("64 KiB", 64 * KIB, 1000, 16), ("8 MiB", 8 * MIB, 24, 4)]
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Client:
    """One connection, which signs its requests."""

    def __init__(self, port, access, secret):
        self.host = f"127.0.0.1:{port}"
        self.access, self.secret = access, secret
        self.connection = http.client.HTTPConnection(self.host, timeout=120)

    def request(self, method, path, query=(), body=b""):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        day, digest = now[:8], hashlib.sha256(body).hexdigest()
        query = urllib.parse.urlencode(sorted(query), quote_via=urllib.parse.quote, safe="~")
        signed = f"host:{self.host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n"
        names = "host;x-amz-content-sha256;x-amz-date"
        canonical = "\n".join([method, path, query, signed, names, digest])
        scope = f"{day}/us-east-1/s3/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashed])
        key = f"AWS4{self.secret}".encode()
        for part in (day, "us-east-1", "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        credential = f"Credential={self.access}/{scope}"
        signed_by = f"{credential}, SignedHeaders={names}, Signature={signature}"
        headers = {
            "x-amz-content-sha256": digest,
            "x-amz-date": now,
            "Authorization": f"AWS4-HMAC-SHA256 {signed_by}",
        }
        self.connection.request(method, f"{path}?{query}" if query else path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status // 100 != 2:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return content


class Tamis:
    name = "tamis"

    def __init__(self, program, folder, port):
        self.program, self.store, self.port = program, os.path.join(folder, "store"), port
        subprocess.run(
            [program, "init", self.store, "--capacity", "8G"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        made = subprocess.run(
            [program, "account", "create", self.store, "bench", "--write", "*", "--json"],
            check=True,
            stdout=subprocess.PIPE,
        )
        account = json.loads(made.stdout)
        self.access, self.secret = account["access_key"], account["secret"]

    def start(self):
        command = [self.program, "serve", self.store, "--s3", f"tcp:127.0.0.1:{self.port}"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stored_bytes(self):
        shown = subprocess.run(
            [self.program, "stats", self.store, "--json"], check=True, stdout=subprocess.PIPE
        )
        figures = json.loads(shown.stdout)
        return figures["stored_bytes"] + figures["table_bytes"]


class MinIO:
    name = "minio"
    access, secret = ACCESS, SECRET

    def __init__(self, program, folder, port):
        self.program, self.folder, self.port = program, os.path.join(folder, "minio"), port

    def start(self):
        environment = dict(
            os.environ, MINIO_ROOT_USER=ACCESS, MINIO_ROOT_PASSWORD=SECRET, MINIO_UPDATE="off"
        )
        environment.update(MINIO_BROWSER="off", CI="true")
        command = [
            self.program,
            "server",
            self.folder,
            "--address",
            f"127.0.0.1:{self.port}",
            "--quiet",
        ]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def stored_bytes(self):
        out = subprocess.run(
            ["du", "-sB1", self.folder], check=True, stdout=subprocess.PIPE
        ).stdout
        return int(out.split()[0])


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def body_of(size_bytes, seed):
    """Bytes of which half compress away: in each 4 KiB, 2 KiB are random."""
    noise = random.Random(seed).randbytes(size_bytes // 2)
    return b"".join(noise[at : at + 2048] + bytes(2048) for at in range(0, len(noise), 2048))


def worker(task):
    method, (port, access, secret), size_bytes, seeds = task
    client, times = Client(port, access, secret), []
    for seed in seeds:
        path = f"/bench/{size_bytes}/{seed:08d}"
        body = body_of(size_bytes, seed) if method == "PUT" else b""
        begun = time.monotonic()
        got = client.request(method, path, body=body)
        times.append(time.monotonic() - begun)
        if method == "GET" and len(got) != size_bytes:
            raise RuntimeError(f"{path}: {len(got)} bytes")
    return times


def measured(pid, requests, work):
    """Requests a second of processor time, requests a second, and the median answer in ms."""
    before, begun = processor_seconds(pid), time.monotonic()
    times = work()
    wall, spent = time.monotonic() - begun, processor_seconds(pid) - before
    return {
        "per_cpu_s": requests / max(spent, 0.01),
        "per_s": requests / wall,
        "p50_ms": statistics.median(times) * 1000,
    }


def transfers(pool, method, account, size_bytes, seeds, clients):
    share = [(method, account, size_bytes, seeds[at::clients]) for at in range(clients)]
    return [taken for times in pool.map(worker, share) for taken in times]


def list_all(account):
    client, token, keys, times = Client(*account), None, 0, []
    while True:
        query = [("list-type", "2"), ("max-keys", "1000"), ("prefix", "4096/")]
        query += [("continuation-token", token)] if token else []
        begun = time.monotonic()
        document = xml.fromstring(client.request("GET", "/bench", query))
        times.append(time.monotonic() - begun)
        space = document.tag[: document.tag.index("}") + 1]
        keys += len(document.findall(f"{space}Contents"))
        token = document.findtext(f"{space}NextContinuationToken")
        if not token:
            return keys, times


def wait_until_ready(account):
    for _ in range(300):
        try:
            return Client(*account).request("GET", "/")
        except (OSError, RuntimeError, http.client.HTTPException):
            time.sleep(0.1)
    raise RuntimeError("the server does not answer")


def run_server(server, arguments, pool, round_number, rows):
    account = (server.port, server.access, server.secret)
    process = server.start()
    try:
        wait_until_ready(account)
        if round_number == 0:
            Client(*account).request("PUT", "/bench")
        for name, size_bytes, requests, clients in SIZES:
            first = round_number * requests
            seeds = list(range(first, first + requests))
            for method in ("PUT", "GET"):
                work = lambda: transfers(pool, method, account, size_bytes, seeds, clients)
                row = measured(process.pid, requests, work)
                rows.setdefault((f"{method} {name}", server.name), []).append(row)
        if round_number == arguments.rounds - 1:
            listing(server, arguments, pool, account, process.pid, rows)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    rows.setdefault(("stored", server.name), []).append(server.stored_bytes())


def listing(server, arguments, pool, account, pid, rows):
    have = SIZES[0][2] * arguments.rounds
    transfers(pool, "PUT", account, 4 * KIB, list(range(have, arguments.keys)), 16)
    for _ in range(arguments.rounds):
        counted = []
        row = measured(pid, arguments.keys, lambda: listed(account, counted))
        if counted != [arguments.keys]:
            raise RuntimeError(f"{server.name} lists {counted} keys of {arguments.keys}")
        rows.setdefault((f"list {arguments.keys}", server.name), []).append(row)


def listed(account, counted):
    keys, times = list_all(account)
    counted.append(keys)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tamis", required=True)
    parser.add_argument("--minio", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=100_000)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.dir, ignore_errors=True)
    os.makedirs(arguments.dir)
    servers = [
        Tamis(arguments.tamis, arguments.dir, 19000),
        MinIO(arguments.minio, arguments.dir, 19001),
    ]
    rows = {}
    with futures.ProcessPoolExecutor(16) as pool:
        for round_number in range(arguments.rounds):
            order = servers if round_number % 2 == 0 else servers[::-1]
            for server in order:
                run_server(server, arguments, pool, round_number, rows)
            print(f"round {round_number + 1} of {arguments.rounds} done", file=sys.stderr)
    print(f"{'':14}{'per processor s':>26}{'ratio':>7}{'per s':>20}{'p50 ms':>16}")
    for name in dict.fromkeys(name for name, _ in rows if name != "stored"):
        ours, theirs = rows[name, "tamis"], rows[name, "minio"]
        median = lambda of, figure: statistics.median(row[figure] for row in of)
        pair = lambda figure, form: [format(median(of, figure), form) for of in (ours, theirs)]
        a, b = pair("per_cpu_s", ",.0f"), pair("per_s", ",.0f")
        ratio = median(ours, "per_cpu_s") / median(theirs, "per_cpu_s")
        print(f"{name:14}{a[0]:>13}{a[1]:>13}{ratio:>7.2f}{b[0]:>10}{b[1]:>10}", end="")
        print("".join(f"{value:>8}" for value in pair("p50_ms", ".2f")))
    stored = [rows["stored", server.name][-1] for server in servers]
    print(f"{'bytes stored':14}{stored[0]:>13}{stored[1]:>13}{stored[0] / stored[1]:>7.2f}")


if __name__ == "__main__":
    main()
