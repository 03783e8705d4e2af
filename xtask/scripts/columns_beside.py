#!/usr/bin/env python3
"""Measures reads of a table's columns from `tamis serve --s3` beside MinIO and the local disk.

    columns_beside.py --tamis target/release/tamis --minio minio --dir /var/tmp/columns [--rounds 7]

Needs the packages tamis (a release wheel), pyarrow, numpy and boto3. The table is made: a million
rows, seven columns, row groups of 131,072 rows. It is written by the profile `dedup` and as pyarrow
writes by default, to a file and to both servers. Readers take turns in each round; the tables of
times have medians, of what a reader waits and of the server's processor. Bytes and requests are
counted by one more read of each through a proxy. Everything is in the machine's page cache.
"""

import argparse
import os
import shutil
import signal
import socket
import statistics
import threading
import time

import numpy
import pyarrow.fs
import pyarrow.parquet as parquet

import tamis
from s3_beside import Client, MinIO, Tamis, processor_seconds, wait_until_ready
from tamis.tables import parquet_options

ROWS = 1_000_000
COLUMNS = {
    "1 column": ["price"],
    "3 columns": ["day", "price", "name"],
    "all 7": None,
}
PROFILES = {"dedup": "dedup.parquet", "default": "default.parquet"}


def made_table():
    chance = numpy.random.default_rng(1)
    notes = numpy.where(chance.random(ROWS) < 0.9, "", "note")
    names = numpy.char.add("name ", chance.integers(0, 50_000, ROWS).astype(str))
    return pyarrow.table(
        {
            "day": numpy.sort(chance.integers(0, 365, ROWS)),
            "shop": chance.integers(0, 100, ROWS).astype("int32"),
            "kind": chance.integers(0, 12, ROWS).astype("int32"),
            "number": chance.integers(0, 10**12, ROWS),
            "price": chance.normal(100, 30, ROWS),
            "name": names,
            "note": notes,
        }
    )


class Proxy:
    """Counts what a server answers, and the requests that it gets."""

    def __init__(self, port):
        self.to, self.bytes, self.requests = port, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", self.to))
            for pair in [(client, server, False), (server, client, True)]:
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, target, is_answer):
        while piece := source.recv(1 << 18):
            if is_answer:
                self.bytes += len(piece)
            else:
                self.requests += piece.count(b" HTTP/1.1\r\n")
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)

    def of(self, read):
        """Bytes and requests of one more read; the first of a connection may ask for more."""
        read()
        self.bytes = self.requests = 0
        read()
        return self.bytes, self.requests


def by_tamis(server, port):
    """Columns by this project's package, which asks a server of its own for all at once."""
    store = tamis.connect(f"http://127.0.0.1:{port}", server.access, server.secret)
    return lambda key, columns: store.bucket("bench").read_columns(key, columns)


def by_pyarrow(server, port):
    """Columns by pyarrow's own file system, as from any server."""
    files = pyarrow.fs.S3FileSystem(
        access_key=server.access,
        secret_key=server.secret,
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=False,
    )
    return lambda key, columns: parquet.read_table(
        f"bench/{key}", columns=columns, filesystem=files
    )


def timed(pid, read):
    """Milliseconds of a read, and of the server's processor."""
    before, begun = pid and processor_seconds(pid), time.perf_counter()
    read()
    taken = time.perf_counter() - begun
    return taken * 1000, (processor_seconds(pid) - before) * 1000 if pid else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tamis", required=True)
    parser.add_argument("--minio")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.dir, ignore_errors=True)
    os.makedirs(arguments.dir)
    servers = [Tamis(arguments.tamis, arguments.dir, 19000)]
    servers += [MinIO(arguments.minio, arguments.dir, 19001)] if arguments.minio else []
    processes = [server.start() for server in servers]
    try:
        measure(arguments, servers, processes)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def measure(arguments, servers, processes):
    table = made_table()
    at_file = lambda key: os.path.join(arguments.dir, key)
    for server in servers:
        wait_until_ready((server.port, server.access, server.secret))
        Client(server.port, server.access, server.secret).request("PUT", "/bench")
    for profile, key in PROFILES.items():
        parquet.write_table(table, at_file(key), **parquet_options(profile))
        for server in servers:
            url = f"http://127.0.0.1:{server.port}"
            with tamis.connect(url, server.access, server.secret) as store:
                store.bucket("bench").put(key, open(at_file(key), "rb").read())
    of_file = lambda key, columns: parquet.read_table(at_file(key), columns=columns)
    readers = [("file, pyarrow", None, of_file, None)]
    for server, process in zip(servers, processes):
        for made in (by_tamis, by_pyarrow):
            proxy = Proxy(server.port)
            name = f"{server.name}, {made.__name__[3:]}"
            through = made(server, proxy.port)
            readers.append((name, process.pid, made(server, server.port), (proxy, through)))
    print("| profile | columns | reader | ms | server's ms | MB | requests |")
    print("|---|---|---|---|---|---|---|")
    for profile, key in PROFILES.items():
        for what, columns in COLUMNS.items():
            rows = [[] for _ in readers]
            for _ in range(arguments.rounds + 1):
                for row, (_, pid, read, _) in zip(rows, readers):
                    row.append(timed(pid, lambda: read(key, columns)))
            expected = of_file(key, columns)
            for row, (name, pid, read, through) in zip(rows, readers):
                assert read(key, columns).equals(expected), name
                told = [profile, what, name, format(median(row, 0), ".1f")]
                told += [format(median(row, 1), ".0f")] if pid else [""]
                if through:
                    proxy, read_through = through
                    moved, requests = proxy.of(lambda: read_through(key, columns))
                    told += [format(moved / 1e6, ".3f"), str(requests)]
                else:
                    told += ["", ""]
                print(f"| {' | '.join(told)} |", flush=True)


def median(row, figure):
    """Without the first round, which opens connections."""
    return statistics.median(taken[figure] for taken in row[1:])


if __name__ == "__main__":
    main()
