"""Sends bytes to servers and prints what comes back. Argument: a JSON file with a list of [label, host, port, hex, ...].

Each further hex string is sent after a pause. A reset, an end and silence are printed apart.
"""

import json
import socket
import sys
import time


def speak(host, port, parts):
    with socket.create_connection((host, port), 5) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for index, part in enumerate(parts):
            if index > 0:
                time.sleep(0.02)
            s.sendall(bytes.fromhex(part))
        s.settimeout(0.8)
        heard = b""
        try:
            while len(heard) < 65536:
                more = s.recv(65536)
                if not more:
                    return "end", heard
                heard += more
        except socket.timeout:
            return "silence", heard
        return "full", heard


for label, host, port, *parts in json.load(open(sys.argv[1])):
    try:
        how, heard = speak(host, port, parts)
    except OSError as error:
        how, heard = type(error).__name__, b""
    print(json.dumps({"label": label, "how": how, "heard": heard.decode("latin1")}), flush=True)
