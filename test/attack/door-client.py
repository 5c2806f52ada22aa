"""A program in a sandbox. Runs the steps of argv[1] (JSON) and prints one result for each (JSON)."""

import errno
import json
import os
import socket
import subprocess
import sys
import time


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def tcp(address, port, count=1):
    answer = b""
    for _ in range(count):
        with socket.socket(family(address)) as s:
            s.settimeout(3)
            s.connect((address, port))
            answer = s.recv(100)
    return answer.decode()


def hold(address, port, count):
    """Opens this many connections at once. Counts how many get an answer and how many are reset."""
    held = []
    printed = {"answered": 0, "reset": 0}
    for _ in range(count):
        s = socket.socket(family(address))
        s.settimeout(3)
        try:
            s.connect((address, port))
            held.append(s)
        except ConnectionResetError:
            # So early that connect itself fails.
            printed["reset"] += 1
    for s in held:
        try:
            printed["answered" if s.recv(100) else "reset"] += 1
        except ConnectionResetError:
            printed["reset"] += 1
    return printed


def udp(address, port):
    with socket.socket(family(address), socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect((address, port))
        s.send(b"query")
        return s.recv(100).decode()


def bind(kind, address, port):
    with socket.socket(family(address), getattr(socket, kind)) as s:
        s.bind((address, port))
        return "bound"


def serve(address, port):
    """A server inside the sandbox, and its client."""
    with socket.socket(family(address)) as server, socket.socket(family(address)) as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen()
        client.settimeout(1)
        client.connect((address, port))
        client.send(b"own")
        with server.accept()[0] as accepted:
            return accepted.recv(100).decode()


def raw(domain, kind, protocol):
    socket.socket(getattr(socket, domain), getattr(socket, kind), protocol).close()
    return "opened"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return "written"


def run(*argv):
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    return {"code": ran.returncode, "out": ran.stdout, "err": ran.stderr}


def wait(seconds):
    time.sleep(seconds)
    return "waited"


def answer(step):
    name, *args = step
    began = time.monotonic()
    try:
        result = globals()[name](*args)
    except OSError as error:
        result = errno.errorcode.get(error.errno, type(error).__name__)
    return {"step": step, "result": result, "ms": round((time.monotonic() - began) * 1000)}


if __name__ == "__main__":
    for step in json.loads(sys.argv[1]):
        print(json.dumps(answer(step)), flush=True)
    sys.stdout.flush()
    os._exit(0)
