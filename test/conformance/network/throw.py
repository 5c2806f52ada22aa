"""Sends inputs to the door as fast as possible. Argument: a file of inputs.

Each input: one byte for whom it is (h allowed.test:80, t allowed.test:443, p the proxy, q and Q DNS by UDP and TCP),
two bytes of length, the input. Connections stay open for a while, so that the gateway hears them to their end.
"""

import collections
import socket
import sys

PLACES = {
    b"h": (socket.gethostbyname("allowed.test"), 80),
    b"t": (socket.gethostbyname("allowed.test"), 443),
    b"p": ("127.0.0.1", 1023),
    b"Q": ("127.0.0.1", 53),
}
HELD = 256

held = collections.deque()
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
thrown = 0
with open(sys.argv[1], "rb") as inputs:
    while kind := inputs.read(1):
        size = int.from_bytes(inputs.read(2), "big")
        data = inputs.read(size)
        thrown += 1
        if kind == b"q":
            datagrams.sendto(data, ("127.0.0.1", 53))
            continue
        s = socket.socket()
        s.settimeout(5)
        try:
            s.connect(PLACES[kind])
            if thrown % 3 == 0 and size > 1:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.send(data[: size // 2])
                data = data[size // 2 :]
            s.send(data)
        except OSError:
            pass
        held.append(s)
        if len(held) > HELD:
            held.popleft().close()
print("thrown", thrown, flush=True)
for s in held:
    s.close()
