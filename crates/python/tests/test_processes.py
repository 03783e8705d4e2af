"""Forks, signals and kills."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import tamis
from tamis import errors

KILLS = int(os.environ.get("TAMIS_KILLS", "5"))

WRITER = """
import random, sys, tamis
store = tamis.open(sys.argv[1], memory=64 << 20)
bucket = store.bucket("bucket")
chance = random.Random(int(sys.argv[2]))
for number in range(1_000_000):
    key = f"{sys.argv[2]}/{number}"
    data = random.Random(key).randbytes(chance.choice([10, 3_000, 60_000, 400_000]))
    durable = chance.random() < 0.5
    assert bucket.put(key, data, durable=durable).durable == durable
    print(key if durable else "-", flush=True)
"""


def test_a_fork_refuses_and_its_end_harms_nobody(store, bucket):
    bucket.put("k", b"v")
    reading = bucket.reading("k")
    writing = bucket.writing("l")
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(errors.Forked, match="fork"):
                bucket.get("k")
            with pytest.raises(errors.Forked):
                reading.read()
            with pytest.raises(errors.Forked):
                writing.write(b"x")
            del reading, writing, bucket, store
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert bucket.get("k") == b"v" and reading.read() == b"v"
    writing.write(b"w")
    writing.finish()
    assert bucket.get("l") == b"w"


def test_another_process_hears_that_it_is_in_use(store):
    program = f"import tamis; tamis.open({store.path!r})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode != 0 and "tamis.errors.InUse" in found.stderr


def test_what_is_not_closed_is_closed_at_the_end(tmp_path):
    program = f"""
import tamis
store = tamis.open({str(tmp_path / "s")!r}, create=True, capacity=64 << 20)
store.create_bucket("bucket").put("k", b"v")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with tamis.open(tmp_path / "s") as store:
        assert store.bucket("bucket").get("k") == b"v"


def test_a_signal_ends_a_long_put_and_leaves_nothing(bucket):
    """The handler runs between two pieces, so long before the end of the gigabyte."""

    class Asked(Exception):
        pass

    def handler(number, frame):
        raise Asked

    before = signal.signal(signal.SIGUSR1, handler)
    ready = threading.Event()

    def interrupt():
        ready.wait()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        data = bytes(1 << 30)
        with pytest.raises(Asked):
            ready.set()
            bucket.put("k", data)
            time.sleep(60)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert not bucket.exists("k")


def test_other_threads_run_while_one_waits(bucket):
    """The interpreter's lock is released: a thread counts while another puts."""
    counted = [0]
    ended = threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        at_first = counted[0]
        bucket.put("k", bytes(64 << 20), durable=True)
        assert counted[0] > at_first
    finally:
        ended.set()
        thread.join()


def test_what_was_said_to_be_durable_survives_a_kill(tmp_path):
    """A writer is killed again and again; the store opens, and has what it said."""
    import random

    path = tmp_path / "store"
    with tamis.open(path, create=True, capacity=2 << 30, memory=64 << 20) as store:
        store.create_bucket("bucket")
    told = set()
    for kill in range(KILLS):
        arguments = [sys.executable, "-c", WRITER, str(path), str(kill)]
        writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        lines = random.Random(kill).randrange(1, 120)
        for _ in range(lines):
            told.add(writer.stdout.readline().strip())
        writer.kill()
        # What it had written before it died it had been told as well.
        told.update(line.strip() for line in writer.stdout if line.endswith("\n"))
        writer.wait()
        writer.stdout.close()
        with tamis.open(path, memory=64 << 20) as store:
            bucket = store.bucket("bucket")
            for key in told - {"-", ""}:
                info = bucket.head(key)
                assert bucket.get(key) == random.Random(key).randbytes(info.size)
            for info in bucket.list():
                data = bucket.get(info.key)
                assert data == random.Random(info.key).randbytes(info.size)
            bucket.delete([info.key for info in bucket.list()], durable=True)
            told = set()
