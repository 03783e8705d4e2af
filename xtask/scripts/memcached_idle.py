#!/usr/bin/python3
"""Thousands of idle connections: what they take in the server, and that it serves others.

    memcached_idle.py HOST PORT CONNECTIONS PID BYTES_MAX

Each connection has had an answer before it is idle. The figure is the growth of the server's own
memory; what the kernel keeps for a socket is not in it.
"""

import resource
import socket
import sys

HOST, PORT = sys.argv[1], int(sys.argv[2])
CONNECTIONS, PID, BYTES_MAX = (int(word) for word in sys.argv[3:6])


def memory_bytes():
    with open(f"/proc/{PID}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    raise RuntimeError("the kernel does not say")


def ask(connection, said=b"get idle\r\n", end=b"END\r\n"):
    connection.sendall(said)
    answer = b""
    while not answer.endswith(end):
        part = connection.recv(1 << 16)
        assert part, "the server has closed an idle connection"
        answer += part


_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
first = [socket.create_connection((HOST, PORT)) for _ in range(50)]
ask(first[0], b"set idle 0 0 4096\r\n" + b"x" * 4096 + b"\r\n", b"STORED\r\n")
for one in first * 20:
    ask(one)
before = memory_bytes()
idle = []
for number in range(CONNECTIONS):
    idle.append(socket.create_connection((HOST, PORT)))
    ask(idle[-1])
each = (memory_bytes() - before) / CONNECTIONS
for one in idle[:: CONNECTIONS // 100] + first:
    ask(one)
print(f"{CONNECTIONS} idle connections take {each:.0f} bytes each")
assert each <= BYTES_MAX, f"{each:.0f} bytes are more than {BYTES_MAX}"
