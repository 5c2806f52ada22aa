"""Speaks to virtiofsd as a guest that has taken over QEMU: by QEMU's own connection, with any FUSE request.

hostile-qemu.py PID FD SEED FILE...: tries to reach each absolute FILE in every way, then sends garbage. Prints JSON.
"""
import ctypes, json, mmap, os, random, select, signal, socket, struct, sys, time

pid, fd, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
GETFD = 438
SIZE, BASE = 8 << 20, 0x10000000
QUEUE, ENTRIES, ROOM = 1, 16, 1 << 17
DESC, AVAIL, USED, REQUEST, REPLY = 0, 4096, 8192, 1 << 20, 2 << 20
OPS = dict(lookup=1, getattr=3, setattr=4, symlink=6, mknod=8, mkdir=9, unlink=10, rename=12, link=13, open=14, read=15, write=16, init=26, create=35)

# QEMU waits, and no longer reads what virtiofsd answers.
os.kill(pid, signal.SIGSTOP)
stolen = libc.syscall(GETFD, os.pidfd_open(pid), fd, 0)
assert stolen >= 0, os.strerror(ctypes.get_errno())
wire = socket.socket(fileno=stolen)
wire.setblocking(True)

def say(request, payload=b'', fds=()):
    head = struct.pack('<III', request, 1, len(payload))
    socket.send_fds(wire, [head + payload], list(fds)) if fds else wire.sendall(head + payload)

def ask(request, payload=b''):
    say(request, payload)
    head = wire.recv(12, socket.MSG_WAITALL)
    return wire.recv(struct.unpack('<III', head)[2], socket.MSG_WAITALL)

memfd = os.memfd_create('guest')
os.ftruncate(memfd, SIZE)
memory = mmap.mmap(memfd, SIZE)
ask(11, struct.pack('<II', QUEUE, 0))
say(5, struct.pack('<IIQQQQ', 1, 0, 0, SIZE, BASE, 0), [memfd])
say(8, struct.pack('<II', QUEUE, ENTRIES))
say(10, struct.pack('<II', QUEUE, 0))
say(9, struct.pack('<IIQQQQ', QUEUE, 0, BASE + DESC, BASE + USED, BASE + AVAIL, 0))
kick, call = os.eventfd(0), os.eventfd(0)
say(13, struct.pack('<Q', QUEUE), [call])
say(12, struct.pack('<Q', QUEUE), [kick])
say(18, struct.pack('<II', QUEUE, 1))
sent = 0

class Gone(Exception): pass

def raw(request, wait=10.0):
    """Puts bytes into the queue, and returns the reply, or None."""
    global sent
    before = struct.unpack_from('<H', memory, USED + 2)[0]
    memory[REQUEST:REQUEST + len(request)] = request
    memory[REPLY:REPLY + 16] = bytes(16)
    memory[DESC:DESC + 32] = struct.pack('<QIHHQIHH', REQUEST, len(request), 1, 1, REPLY, ROOM, 2, 0)
    struct.pack_into('<H', memory, AVAIL + 4 + 2 * (sent % ENTRIES), 0)
    sent += 1
    struct.pack_into('<H', memory, AVAIL + 2, sent & 0xffff)
    os.eventfd_write(kick, 1)
    late = time.monotonic() + wait
    while time.monotonic() < late:
        if struct.unpack_from('<H', memory, USED + 2)[0] != before:
            length = struct.unpack_from('<I', memory, REPLY)[0]
            return memory[REPLY:REPLY + min(length, ROOM)]
        ready, _, _ = select.select([call, wire], [], [], 0.005)
        if call in ready: os.eventfd_read(call)
        if wire in ready and wire.recv(1, socket.MSG_PEEK) == b'': raise Gone()
    return None

def fuse(op, node, body=b'', uid=0):
    head = struct.pack('<IIQQIIII', 40 + len(body), OPS[op], sent + 1, node, uid, uid, 1, 0)
    reply = raw(head + body) or struct.pack('<IiQ', 16, -110, 0)
    return -struct.unpack_from('<i', reply, 4)[0], reply[16:]

def lookup(node, name):
    error, body = fuse('lookup', node, name + b'\0')
    return (error, struct.unpack_from('<Q', body)[0]) if error == 0 else (error, 0)

def content(node):
    error, body = fuse('open', node, struct.pack('<II', os.O_RDONLY, 0))
    if error: return None
    error, body = fuse('read', node, struct.pack('<QQIIQII', struct.unpack_from('<Q', body)[0], 0, 4096, 0, 0, 0, 0))
    return None if error else body.decode('latin1')

def walk(path, node=1):
    for name in filter(None, path.split('/')):
        error, node = lookup(node, name.encode())
        if error: return 0
    return node

def damage(node, parent, name):
    """Every way to change a file, in place and by its name."""
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        error, body = fuse('open', node, struct.pack('<II', flags, 0))
        if not error: fuse('write', node, struct.pack('<QQIIQII', struct.unpack_from('<Q', body)[0], 0, 5, 0, 0, 0, 0) + b'taken')
    for valid, size, mode in ((8, 0, 0), (1, 0, 0o104777), (6, 0, 0)):
        fuse('setattr', node, struct.pack('<IIQQQQQQIIIIIIII', valid, 0, 0, size, 0, 0, 0, 0, 0, 0, 0, mode, 0, 0, 0, 0))
    fuse('unlink', parent, name + b'\0')
    fuse('rename', parent, struct.pack('<Q', parent) + name + b'\0moved\0')
    fuse('link', parent, struct.pack('<Q', node) + b'linked\0')

seen, garbage = {}, 0
try:
    fuse('init', 0, struct.pack('<IIII', 7, 31, 65536, 0))
    for path in sys.argv[4:]:
        node = walk(path)
        ways = [content(node)] if node else []
        # Names that are paths, from the root and from the directory that is shared.
        for name in (path, path[1:], '../..' + path, '/proc/self/root' + path, '..', '.', ''):
            for start in (1, walk(os.path.dirname(path))):
                error, found = lookup(start, name.encode()) if start else (2, 0)
                if not error: ways += [content(found), content(walk(path, found))]
        parent = walk(os.path.dirname(path))
        if node and parent: damage(node, parent, os.path.basename(path).encode())
        seen[path] = sorted({text for text in ways if text})
    here = walk(os.path.dirname(sys.argv[4]))
    for name, mode in ((b'device', 0o060666), (b'chars', 0o020666)):
        fuse('mknod', here, struct.pack('<IIII', mode, 0x103, 0, 0) + name + b'\0')
    fuse('create', here, struct.pack('<IIII', os.O_RDWR | os.O_CREAT, 0o104755, 0, 0) + b'setuid\0')
    fuse('symlink', here, b'outward\0/root\0')
    # A link that the client made leads only where the sandbox's own links lead.
    through = walk(os.path.dirname(sys.argv[4]) + '/outward')
    seen['through a link'] = [text for text in [content(through)] if text]
    dice = random.Random(seed)
    for garbage in range(1, 1001):
        body = bytes(dice.randrange(256) for _ in range(dice.randrange(0, 200)))
        head = struct.pack('<IIQQIIII', dice.choice((40 + len(body), dice.randrange(1 << 32))), dice.randrange(1, 54), garbage, dice.choice((1, here, dice.randrange(1 << 64))), *(dice.choice((0, dice.randrange(1 << 32))) for _ in range(4)))
        # virtiofsd answers no request that it cannot read.
        raw(head[:dice.choice((40, 40, 40, dice.randrange(41)))] + body, 0.02)
    print(json.dumps({'seen': seen, 'garbage': garbage, 'alive': True}))
except (Gone, BrokenPipeError, ConnectionResetError):
    print(json.dumps({'seen': seen, 'garbage': garbage, 'alive': False}))
