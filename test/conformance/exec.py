"""Tries every way to run something that the policy does not list, and prints one JSON line per try."""
import ctypes, errno, json, mmap, os, shutil, subprocess, sys

WORKSPACE = os.getcwd()
PLACES = [WORKSPACE, "/tmp", "/var/tmp", "/dev/shm", "/run", os.environ["HOME"], os.environ["HOME"] + "/.cache"]
LOADERS = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1"]
LOADER = next((path for path in LOADERS if os.path.exists(path)), None)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
READ, WRITE, EXEC, PRIVATE, ANONYMOUS = 1, 2, 4, 2, 32
PAGE = mmap.PAGESIZE


def attempt(name, work):
    try:
        outcome = work() or "ok"
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error))
    print(json.dumps({"name": name, "outcome": outcome}), flush=True)


def plant(path, source="/usr/bin/true"):
    shutil.copy(source, path)
    os.chmod(path, 0o755)
    return path


def run(*argv):
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "ok" if done.returncode == 0 else "exit %d" % done.returncode


def become(target):
    """In a child: the errno of execve is its exit code."""
    child = os.fork()
    if child == 0:
        try:
            os.execve(target, ["true"], {})
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "ok" if code == 0 else errno.errorcode.get(code, str(code))


def check(result):
    if result in (-1, None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mapped(path, protection):
    with open(path, "rb") as file:
        return check(libc.mmap(None, PAGE, protection, PRIVATE, file.fileno(), 0))


def by_descriptor(path):
    file = os.open(path, os.O_RDONLY)
    os.set_inheritable(file, True)
    return become("/proc/self/fd/%d" % file)


def in_memory(flags):
    file = os.memfd_create("program", flags)
    with open("/usr/bin/true", "rb") as source:
        os.write(file, source.read())
    return become("/proc/self/fd/%d" % file)


def loader_on_memory():
    file = os.memfd_create("program", 8)
    with open("/usr/bin/true", "rb") as source:
        os.write(file, source.read())
    done = subprocess.run([LOADER, "/proc/self/fd/%d" % file], pass_fds=[file], stderr=subprocess.DEVNULL)
    return "ok" if done.returncode == 0 else "exit %d" % done.returncode


def library(path):
    try:
        ctypes.CDLL(path)
    except OSError as error:
        return "refused" if "map segment" in str(error) else str(error)


for place in filter(lambda place: os.access(place, os.W_OK), PLACES):
    copy = plant(place + "/copy-of-true")
    attempt("copy in " + place.replace(WORKSPACE, "."), lambda: run(copy))
    attempt("map as code from " + place.replace(WORKSPACE, "."), lambda: mapped(copy, READ | EXEC) and None)
    attempt("loader on a copy in " + place.replace(WORKSPACE, "."), lambda: run(LOADER, copy))

mine = WORKSPACE + "/copy-of-true"
attempt("planted before the start", lambda: run("./planted"))
attempt("through a descriptor", lambda: by_descriptor(mine))
attempt("by descriptor alone", lambda: become(os.open(mine, os.O_RDONLY)))
attempt("from memory", lambda: in_memory(0))
attempt("loader on memory that is sealed against execution", lambda: loader_on_memory())
attempt("make a mapping executable", lambda: check(libc.mprotect(mapped(mine, READ), PAGE, READ | EXEC)) and None)
shutil.copy(library_path := os.path.realpath(next(line.split()[-1] for line in open("/proc/self/maps") if "libm.so" in line or "libc.so" in line)), "./library.so")
attempt("library from the workspace", lambda: library("./library.so"))
with open("./script", "w") as file:
    file.write("#!/usr/bin/python3\nraise SystemExit(0)\n")
os.chmod("./script", 0o755)
attempt("script", lambda: run("./script"))
os.symlink(mine, "./link")
attempt("link to a copy", lambda: run("./link"))

# Twins: these work whatever tools.exec says.
attempt("twin: system program", lambda: run("/usr/bin/true"))
os.symlink("/usr/bin/true", "./system-link")
attempt("twin: link to a system program", lambda: run("./system-link"))
attempt("twin: script given to its interpreter", lambda: run("/usr/bin/python3", "./script"))
attempt("twin: system library", lambda: library(library_path))
attempt("twin: code made in memory", lambda: check(libc.mmap(None, PAGE, READ | WRITE | EXEC, PRIVATE | ANONYMOUS, -1, 0)) and None)
attempt("twin: data in a file without a name", lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR) and None)
