"""Swaps pairs of names as fast as it can, for this many seconds: swap.py SECONDS A B [A B]…"""
import ctypes, sys, time

RENAME_EXCHANGE = 2
AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)

end = time.monotonic() + float(sys.argv[1])
names = [name.encode() for name in sys.argv[2:]]
pairs = list(zip(names[0::2], names[1::2]))
count = 0
print("swapping", flush=True)
while time.monotonic() < end:
    for _ in range(100):
        for a, b in pairs:
            if libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0:
                count += 1
print(count)
