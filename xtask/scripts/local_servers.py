"""What scripts that start servers on this machine share."""

import socket
import time


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
