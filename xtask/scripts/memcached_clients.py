#!/usr/bin/python3
"""Python's clients of memcached find what they put: pymemcache and pylibmc.

    memcached_clients.py HOST PORT
"""

import random
import sys

import pylibmc
from pymemcache.client.base import Client, PooledClient

HOST, PORT = sys.argv[1], int(sys.argv[2])


def through_pymemcache():
    client = Client((HOST, PORT), default_noreply=False)
    assert client.flush_all()
    assert client.set("a", b"1") and client.get("a") == b"1"
    assert not client.add("a", b"2") and client.replace("a", b"3")
    assert client.append("a", b"4") and client.prepend("a", b"2") and client.get("a") == b"234"
    assert client.incr("a", 6) == 240 and client.decr("a", 40) == 200
    value, cas = client.gets("a")
    assert client.cas("a", b"new", cas) and client.cas("a", b"newer", cas) is False
    assert client.touch("a", 100) and client.get("a") == b"new"
    assert client.delete("a") and client.get("a") is None
    many = {f"key-{number}": random.randbytes(number * 37) for number in range(300)}
    assert client.set_many(many) == []
    assert client.get_many(list(many)) == many
    large = random.randbytes(900_000)
    assert client.set("large", large) and client.get("large") == large
    assert client.version() and client.stats()[b"curr_items"] >= 301
    # Quiet commands, and then one that is answered: all of them are carried out before.
    quiet = PooledClient((HOST, PORT), max_pool_size=4)
    for number in range(1000):
        quiet.set("quiet", str(number).encode(), noreply=True)
    print("pymemcache: values, conditions, counters, many keys, long values")
    client.close()


def through_pylibmc():
    client = pylibmc.Client([f"{HOST}:{PORT}"], binary=False, behaviors={"cas": True})
    assert client.set("b", {"any": ["thing"]}) and client.get("b") == {"any": ["thing"]}
    many = {f"lib-{number}": number for number in range(200)}
    assert client.set_multi(many) == [] and client.get_multi(list(many)) == many
    assert client.incr("lib-7", 3) == 10
    value, cas = client.gets("b")
    assert client.cas("b", "other", cas) and client.get("b") == "other"
    assert client.delete_multi(list(many)) and client.get("lib-3") is None
    print("pylibmc: objects, many keys, counters, versions")


through_pymemcache()
through_pylibmc()
