"""What scripts that start servers on this machine share."""

import argparse
import socket
import time


def parser(description):
    """Arguments of every such script: where its programs lie, and where it may work."""
    raw = argparse.RawTextHelpFormatter
    made = argparse.ArgumentParser(description=description, formatter_class=raw)
    made.add_argument("--target", required=True, help="folder of the release build")
    made.add_argument("--dir", required=True, help="folder to work in; it is made anew")
    return made


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def connect(port):
    """Connects as soon as somebody listens at the port."""
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise RuntimeError(f"nobody answers at port {port}")


def wait_for(port):
    connect(port).close()
