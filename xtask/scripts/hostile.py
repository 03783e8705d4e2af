"""Sends what no honest client sends, and looks after each that an honest one is still served.

usage: hostile.py URI SOCKET
"""

import os
import random
import socket
import struct
import sys

import nbd

SIZE = 64 * 1024 * 1024
MAGIC_OPTION = b"IHAVEOPT"
REQUEST_MAGIC = 0x25609513
OPT_EXPORT_NAME, OPT_LIST, OPT_GO = 1, 3, 7
CMD_READ, CMD_WRITE, CMD_TRIM = 0, 1, 4
# How long the server may take to answer or hang up, before we say it hangs.
PATIENCE_S = 60

CASES = []


def case(test):
    CASES.append(test)
    return test


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(PATIENCE_S)
    sock.connect(path)
    return sock


def receive(sock, length):
    """Exactly `length` bytes, or fewer when the server hangs up."""
    data = b""
    while len(data) < length:
        try:
            piece = sock.recv(length - len(data))
        except ConnectionError:
            break
        if not piece:
            break
        data += piece
    return data


def drain(sock):
    """Everything until the server hangs up; a server that does neither is caught by the timeout."""
    sock.shutdown(socket.SHUT_WR)
    while receive(sock, 65536):
        pass
    sock.close()


def send(sock, data):
    try:
        sock.sendall(data)
    except ConnectionError:
        pass


def greeted(path, flags=1):
    """A connection that has shaken hands and may negotiate options."""
    sock = connect(path)
    greeting = receive(sock, 18)
    assert greeting[:8] == b"NBDMAGIC" and greeting[8:16] == MAGIC_OPTION, greeting
    send(sock, struct.pack(">I", flags))
    return sock


def option(kind, data, length=None):
    size = len(data) if length is None else length
    return MAGIC_OPTION + struct.pack(">II", kind, size) + data


def transmitting(path):
    """A connection to volume `disk`, past negotiation, the old way."""
    sock = greeted(path, flags=3)
    send(sock, option(OPT_EXPORT_NAME, b"disk"))
    answer = receive(sock, 10)
    assert len(answer) == 10, answer
    return sock


def request(kind, offset, length, flags=0, cookie=7, magic=REQUEST_MAGIC):
    return struct.pack(">IHHQQI", magic, flags, kind, cookie, offset, length)


def reply_error(sock):
    """The error of a simple reply; None when the server hung up instead."""
    answer = receive(sock, 16)
    return struct.unpack(">I", answer[4:8])[0] if len(answer) == 16 else None


def refused(call):
    """`call` fails with an error from the server."""
    try:
        call()
    except nbd.Error:
        return
    sys.exit("the server accepted an illegal request")


def loose(uri):
    """A libnbd client that checks nothing by itself."""
    handle = nbd.NBD()
    handle.set_strict_mode(0)
    handle.connect_uri(uri)
    return handle


@case
def reads_and_writes_past_the_end(uri, _):
    handle = loose(uri)
    refused(lambda: handle.pread(4096, SIZE))
    refused(lambda: handle.pread(8192, SIZE - 4096))
    refused(lambda: handle.pwrite(bytes(4096), SIZE))
    refused(lambda: handle.trim(4096, SIZE))
    refused(lambda: handle.zero(1 << 31, SIZE - 4096))
    refused(lambda: handle.pread(4096, (1 << 63) - 4096))
    assert bytes(handle.pread(512, 0)) == b"w" * 512


@case
def offsets_that_overflow(_, path):
    for kind in (CMD_READ, CMD_TRIM):
        sock = transmitting(path)
        send(sock, request(kind, (1 << 64) - 512, 4096))
        assert reply_error(sock) != 0
        drain(sock)


@case
def flags_nobody_knows(uri, _):
    handle = loose(uri)
    refused(lambda: handle.pread(4096, 0, 0x8000))
    refused(lambda: handle.flush(0x8000))
    assert bytes(handle.pread(512, 0)) == b"w" * 512


@case
def a_command_nobody_knows(_, path):
    sock = transmitting(path)
    send(sock, request(0x4242, 0, 0))
    assert reply_error(sock) != 0
    drain(sock)


@case
def a_request_with_wrong_magic(_, path):
    sock = transmitting(path)
    send(sock, request(CMD_READ, 0, 512, magic=0xDEADBEEF))
    drain(sock)


@case
def a_read_too_large_to_answer(_, path):
    sock = transmitting(path)
    send(sock, request(CMD_READ, 0, 0xFFFFFFFF))
    assert reply_error(sock) != 0
    drain(sock)


@case
def a_write_that_promises_gigabytes(_, path):
    sock = transmitting(path)
    send(sock, request(CMD_WRITE, 0, 0xFFFFFFFF) + bytes(4096))
    drain(sock)


@case
def a_write_cut_short(_, path):
    sock = transmitting(path)
    send(sock, request(CMD_WRITE, 0, 65536) + b"x" * 1000)
    drain(sock)


@case
def half_a_request(_, path):
    sock = transmitting(path)
    send(sock, request(CMD_READ, 0, 512)[:13])
    drain(sock)


@case
def answers_nobody_waits_for(_, path):
    for _ in range(8):
        sock = transmitting(path)
        send(sock, request(CMD_READ, 0, 1 << 20) * 64)
        sock.close()


@case
def noise_instead_of_a_handshake(_, path):
    dice = random.Random(1)
    for length in (1, 4, 17, 4096, 1 << 20):
        sock = connect(path)
        send(sock, dice.randbytes(length))
        drain(sock)


@case
def noise_after_the_handshake(_, path):
    dice = random.Random(2)
    for length in (1, 16, 4096, 1 << 20):
        sock = greeted(path)
        send(sock, dice.randbytes(length))
        drain(sock)


@case
def an_option_that_promises_gigabytes(_, path):
    for kind in (OPT_GO, OPT_LIST, OPT_EXPORT_NAME, 0x7777):
        sock = greeted(path)
        send(sock, option(kind, b"x" * 64, length=0xFFFFFFFF))
        drain(sock)


@case
def options_nobody_knows(_, path):
    sock = greeted(path)
    for _ in range(100):
        send(sock, option(0x7777, b"?"))
    drain(sock)


@case
def names_that_lie_about_their_length(_, path):
    for name_length, name in ((0xFFFFFFFF, b"disk"), (5000, b"d" * 5000), (3, b"disk"), (0, b"")):
        sock = greeted(path)
        send(sock, option(OPT_GO, struct.pack(">I", name_length) + name + struct.pack(">H", 9)))
        drain(sock)


@case
def names_that_are_not_text(_, path):
    for name in (b"\xff\xfe", b"\0", b"../disk", b"disk\0", b"a" * 4096):
        sock = greeted(path)
        send(sock, option(OPT_GO, struct.pack(">I", len(name)) + name + struct.pack(">H", 0)))
        drain(sock)
        sock = greeted(path, flags=3)
        send(sock, option(OPT_EXPORT_NAME, name))
        drain(sock)


@case
def many_connections_that_say_nothing(_, path):
    socks = [connect(path) for _ in range(100)]
    for sock in socks:
        sock.close()


def main():
    uri, path = sys.argv[1:3]
    witness = nbd.NBD()
    witness.connect_uri(uri)
    data = os.urandom(SIZE // 2)
    witness.pwrite(b"w" * 4096, 0)
    for at in range(0, len(data), 1 << 20):
        witness.pwrite(data[at : at + (1 << 20)], SIZE // 2 + at)
    witness.flush()
    for number, test in enumerate(CASES):
        test(uri, path)
        at = number * 4096
        seen = bytes(witness.pread(4096, SIZE // 2 + at))
        if seen != data[at : at + 4096] or bytes(witness.pread(512, 0)) != b"w" * 512:
            sys.exit("%s harmed the honest client" % test.__name__)
        newcomer = nbd.NBD()
        newcomer.connect_uri(uri)
        newcomer.shutdown()
    for at in range(0, len(data), 1 << 20):
        if bytes(witness.pread(1 << 20, SIZE // 2 + at)) != data[at : at + (1 << 20)]:
            sys.exit("data of the honest client changed")
    witness.shutdown()
    print("%d kinds of hostile messages" % len(CASES))


if __name__ == "__main__":
    main()
