#!/usr/bin/python3
"""What a killed server has kept of what was stored: all up to some item, and nothing after it.

    memcached_kept.py fill  HOST PORT ITEMS    stores items in order, and reads every answer
    memcached_kept.py check HOST PORT ITEMS    finds how many are there
"""

import socket
import sys

VERB, HOST, PORT, ITEMS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
AT_ONCE = 50


def value(number):
    return f"{number:08}".encode() * 64


def exchange(connection, said, end, count):
    connection.sendall(said)
    answer = b""
    while answer.count(end) < count:
        part = connection.recv(1 << 16)
        assert part, "the server has closed the connection"
        answer += part
    return answer


connection = socket.create_connection((HOST, PORT))
if VERB == "fill":
    for start in range(0, ITEMS, AT_ONCE):
        said = b"".join(
            b"set kept-%d 0 0 512\r\n%s\r\n" % (number, value(number))
            for number in range(start, start + AT_ONCE)
        )
        answer = exchange(connection, said, b"\r\n", AT_ONCE)
        assert answer == b"STORED\r\n" * AT_ONCE, answer
else:
    kept = []
    for number in range(ITEMS):
        answer = exchange(connection, b"get kept-%d\r\n" % number, b"END\r\n", 1)
        expected = b"VALUE kept-%d 0 512\r\n%s\r\nEND\r\n" % (number, value(number))
        assert answer in (expected, b"END\r\n"), answer
        kept.append(answer == expected)
    count = kept.count(True)
    assert all(kept[:count]), f"{count} items are kept, and not those which were stored first"
    print(f"after the server ended: the first {count} of {ITEMS} items are there, and no other")
