"""Tries KVM without pen and prints "absent", "forbidden", "creates" or "runs"."""
import ctypes, fcntl, mmap, os, signal, struct, sys

CREATE_VM, VCPU_SIZE, CREATE_VCPU, RUN = 0xAE01, 0xAE04, 0xAE41, 0xAE80
SET_MEMORY, GET_CPUID, SET_CPUID = 0x4020AE46, 0xC008AE05, 0x4008AE90
GET_SREGS, SET_SREGS, SET_REGS = 0x8138AE83, 0x4138AE84, 0x4090AE82
EXIT_HLT = 5


def give_up(*_):
    print("creates")
    os._exit(0)


try:
    kvm = os.open("/dev/kvm", os.O_RDWR)
except FileNotFoundError:
    sys.exit(print("absent"))
except PermissionError:
    sys.exit(print("forbidden"))

machine = fcntl.ioctl(kvm, CREATE_VM, 0)
signal.signal(signal.SIGALRM, give_up)
signal.alarm(10)
memory = mmap.mmap(-1, 0x8000)
for at, entry in ((0x1000, 0x2003), (0x2000, 0x3003), (0x3000, 0x83)):
    memory[at : at + 8] = struct.pack("<Q", entry)
# fninit; fldpi; fistp word [0x5000]; hlt: a floating-point unit rounds pi to three.
code = bytes.fromhex("dbe3 d9eb df1c2500500000 f4")
memory[0x4000 : 0x4000 + len(code)] = code
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(machine, SET_MEMORY, struct.pack("<IIQQQ", 0, 0, 0, 0x8000, address))
cpu = fcntl.ioctl(machine, CREATE_VCPU, 0)
shared = mmap.mmap(cpu, fcntl.ioctl(kvm, VCPU_SIZE))
features = bytearray(8 + 40 * 256)
struct.pack_into("<I", features, 0, 256)
fcntl.ioctl(kvm, GET_CPUID, features)
fcntl.ioctl(cpu, SET_CPUID, features)
state = bytearray(312)
fcntl.ioctl(cpu, GET_SREGS, state)
for i in range(6):
    selector, kind, wide, long = (8, 11, 0, 1) if i == 0 else (16, 3, 1, 0)
    struct.pack_into("<QIH9B", state, 24 * i, 0, 0xFFFFFFFF, selector, kind, 1, 0, wide, 1, long, 1, 0, 0)
for at, value in ((224, 0x80050033), (240, 0x1000), (248, 0x620), (264, 0x500)):
    struct.pack_into("<Q", state, at, value)
fcntl.ioctl(cpu, SET_SREGS, bytes(state))
fcntl.ioctl(cpu, SET_REGS, struct.pack("<18Q", *[0] * 16, 0x4000, 2))
try:
    fcntl.ioctl(cpu, RUN, 0)
except OSError:
    give_up()
halted = struct.unpack_from("<I", shared, 8)[0] == EXIT_HLT
print("runs" if halted and memory[0x5000] == 3 else "creates")
