"""Stores for tests: one in this process, and one behind a server where its program is built.

`TAMIS_PROGRAM` names the program; without it the tests of servers are skipped.
"""

import json
import os
import socket
import subprocess
import time

import pytest

import tamis

CAPACITY = 256 << 20
MEMORY = 64 << 20


@pytest.fixture
def store(tmp_path):
    with tamis.open(tmp_path / "store", create=True, capacity=CAPACITY, memory=MEMORY) as store:
        yield store


@pytest.fixture
def bucket(store):
    return store.create_bucket("bucket")


class Server:
    """A server of Tamis, with an account that may do everything."""

    def __init__(self, folder):
        self.program = os.environ.get("TAMIS_PROGRAM")
        if not self.program:
            pytest.skip("TAMIS_PROGRAM names no server")
        self.store = folder / "served"
        run = [self.program, "init", self.store, "--capacity", str(CAPACITY)]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        account = [self.program, "account", "create", self.store, "tests", "--write", "*", "--json"]
        made = json.loads(subprocess.run(account, check=True, stdout=subprocess.PIPE).stdout)
        self.key, self.secret = made["access_key"], made["secret"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        listen = f"tcp:127.0.0.1:{self.port}"
        serve = [self.program, "serve", self.store, "--memory", "64M", "--s3", listen]
        self.process = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
        self._wait()

    def _wait(self):
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def run(self, *arguments):
        subprocess.run([self.program, *arguments], check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def connected(server):
    pytest.importorskip("boto3")
    with tamis.connect(server.url, server.key, server.secret) as store:
        yield store


@pytest.fixture
def remote(connected):
    yield connected
    for info in connected.buckets():
        connected.delete_bucket(info.name, with_objects=True)


@pytest.fixture(params=["embedded", "server"])
def any_store(request):
    """A store of each kind."""
    return request.getfixturevalue("store" if request.param == "embedded" else "remote")


@pytest.fixture
def any_bucket(any_store):
    return any_store.create_bucket("bucket")
