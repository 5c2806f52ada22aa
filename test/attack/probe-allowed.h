/* The twins: what ordinary programs do, which must work. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static int ended_well(pid_t pid) {
  int status = 1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void *thread_main(void *arg) { return arg; }

static long thread(void) {
  pthread_t one;
  void *back = 0;
  return HOLDS(pthread_create(&one, 0, thread_main, scratch) == 0 && pthread_join(one, &back) == 0 && back == scratch);
}

static long exec_itself(void) {
  pid_t pid = fork();
  if (pid == 0) execl("/proc/self/exe", "probe", "--nothing", (char *)0), _exit(9);
  return HOLDS(ended_well(pid));
}

static long exec_by_descriptor(void) {
  pid_t pid = fork();
  if (pid == 0) {
    char *argv[] = {"probe", "--nothing", 0}, *env[] = {0};
    fexecve(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), argv, env), _exit(9);
  }
  return HOLDS(ended_well(pid));
}

/* How a debugger starts: the child requests it. */
static long trace_child(void) {
  pid_t pid = fork();
  int status = 0;
  if (pid == 0) ptrace(PTRACE_TRACEME, 0, 0, 0), raise(SIGSTOP), _exit(0);
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return HOLDS(0);
  if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)) return -1;
  if (ptrace(PTRACE_CONT, pid, 0, 0)) return -1;
  return HOLDS(ended_well(pid));
}

static long pass_descriptor(void) {
  int pair[2], back = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return -1;
  char byte = 'x', space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec io = {&byte, 1};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &pair[0], sizeof(int));
  if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1) return -1;
  memcpy(&back, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof back);
  return back;
}

static long list_interfaces(void) {
  struct { struct nlmsghdr head; struct rtgenmsg body; } ask = {
    {.nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}, {0}};
  char answer[8192];
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0) return -1;
  return recv(fd, answer, sizeof answer, 0);
}

static long read_ready(int fd) {
  char space[256];
  return fd < 0 ? -1 : read(fd, space, sizeof space);
}

static long narrow_itself(void) {
  struct { unsigned short code; unsigned char jt, jf; unsigned k; } allow = {6, 0, 0, 0x7fff0000};
  struct { unsigned short length; void *program; } program = {1, &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
  return syscall(SYS_seccomp, 1, 0, &program);
}

static void probe_allowed(void) {
  ALLOW("A01-fork", "fork and wait", ({ pid_t p = fork(); if (p == 0) _exit(0); HOLDS(ended_well(p)); }));
  ALLOW("A01-vfork", "vfork and wait", ({ pid_t p = vfork(); if (p == 0) _exit(0); HOLDS(ended_well(p)); }));
  ALLOW("A02-exec", "exec", exec_itself());
  ALLOW("A02-fexecve", "exec by descriptor", exec_by_descriptor());
  ALLOW("A03-thread", "a thread", thread());
  ALLOW("A03-clone", "clone of a process", clone_with(0));
  ALLOW("A03-unshare-files", "a descriptor table of its own", unshare(CLONE_FILES | CLONE_FS));
  ALLOW("A04-trace-child", "debugging a child that asked for it", trace_child());
  ALLOW("A05-pipe", "pipe", pipe2((int[2]){0}, O_CLOEXEC));
  ALLOW("A05-epoll", "epoll", epoll_create1(EPOLL_CLOEXEC));
  ALLOW("A05-eventfd", "eventfd", read_ready(eventfd(1, EFD_CLOEXEC)));
  ALLOW("A05-timerfd", "timerfd", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  ALLOW("A05-signalfd", "signalfd", ({ sigset_t s; sigemptyset(&s); signalfd(-1, &s, SFD_CLOEXEC); }));
  ALLOW("A05-inotify", "a watch on a directory", inotify_add_watch(inotify_init1(IN_CLOEXEC), scratch, IN_CREATE));
  ALLOW("A05-pidfd", "pidfd of itself", syscall(NR_pidfd_open, getpid(), 0));
  ALLOW("A06-memfd", "memfd", memfd_create("probe", MFD_CLOEXEC));
  ALLOW("A06-mmap-exec", "memory that a JIT makes executable", ({ void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); mprotect(p, 4096, PROT_READ | PROT_EXEC); }));
  ALLOW("A06-madvise", "madvise", ({ void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); madvise(p, 4096, MADV_DONTNEED); }));
  ALLOW("A06-shm", "shared memory segment", ({ int i = shmget(IPC_PRIVATE, 4096, 0600); shmctl(i, IPC_RMID, 0) ? -1 : i; }));
  ALLOW("A06-sem", "semaphore", ({ int i = semget(IPC_PRIVATE, 1, 0600); semctl(i, 0, IPC_RMID) ? -1 : i; }));
  ALLOW("A07-unix", "Unix stream", socket(AF_UNIX, SOCK_STREAM, 0));
  ALLOW("A07-unix-seqpacket", "Unix packets", socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  ALLOW("A07-rights", "a descriptor over a Unix socket", pass_descriptor());
  ALLOW("A07-tcp", "TCP socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ALLOW("A07-tcp-number", "TCP socket by number", socket(AF_INET, SOCK_STREAM, 6));
  ALLOW("A07-tcp6", "TCP socket over IPv6", socket(AF_INET6, SOCK_STREAM, 0));
  ALLOW("A07-udp", "UDP socket", socket(AF_INET, SOCK_DGRAM, 17));
  ALLOW("A07-udp6", "UDP socket over IPv6", socket(AF_INET6, SOCK_DGRAM, 0));
  ALLOW("A07-interfaces", "list of interfaces", list_interfaces());
  ALLOW("A07-nodelay", "TCP_NODELAY", setsockopt(socket(AF_INET, SOCK_STREAM, 0), 6, 1, &(int){1}, sizeof(int)));
  ALLOW("A08-chmod", "chmod 0755", chmod(file, 0755));
  ALLOW("A08-fchmodat", "fchmodat 0600", syscall(SYS_fchmodat, AT_FDCWD, file, 0600));
  ALLOW("A08-sticky", "mkdir with the sticky bit", mkdir(missing, 01777) || rmdir(missing) ? -1 : 0);
  ALLOW("A08-create", "file with an ordinary mode", ({ int f = open(missing, O_CREAT | O_EXCL | O_RDWR, 0644); unlink(missing) ? -1 : f; }));
  ALLOW("A08-read-dirty-mode", "open of an old file with dirt in the mode", syscall(SYS_openat, AT_FDCWD, file, O_RDONLY, 06755));
  ALLOW("A08-tmpfile", "nameless file", syscall(SYS_openat, AT_FDCWD, scratch, O_TMPFILE | O_RDWR, 0600));
  ALLOW("A08-fifo", "named pipe", mkfifo(missing, 0600) || unlink(missing) ? -1 : 0);
  ALLOW("A08-rename", "renameat2 without replacing", renameat2(AT_FDCWD, file, AT_FDCWD, file, 0));
  ALLOW("A08-statx", "statx", ({ struct statx s; statx(AT_FDCWD, file, 0, STATX_ALL, &s); }));
  ALLOW("A08-copy", "copy_file_range", ({ int f = open(file, O_RDWR); copy_file_range(f, 0, f, &(loff_t){4096}, 1, 0); }));
  ALLOW("A08-xattr", "user attribute, where there are any", ({ char v[8]; long r = syscall(SYS_getxattr, file, "user.none", v, 8); r < 0 && (errno == ENODATA || errno == ENOTSUP) ? 0 : r; }));
  ALLOW("A09-winsize", "window size of its own terminal", terminal_ioctl(TIOCGWINSZ, (char[64]){0}));
  ALLOW("A09-raw-mode", "terminal modes", terminal_ioctl(TCGETS, (char[64]){0}));
  ALLOW("A09-fionread", "FIONREAD", ({ int p[2]; pipe(p) ? -1 : ioctl(p[0], FIONREAD, &(int){0}); }));
  ALLOW("A10-persona-query", "query of the personality", syscall(SYS_personality, 0xffffffff));
  ALLOW("A10-persona-aslr", "a debugger turns randomization off", syscall(SYS_personality, 0x40000));
  ALLOW("A10-getrandom", "getrandom", syscall(SYS_getrandom, (char[8]){0}, 8, 0));
  ALLOW("A10-membarrier", "membarrier query", syscall(SYS_membarrier, 0, 0, 0));
  ALLOW("A10-affinity", "CPU affinity", ({ cpu_set_t c; sched_getaffinity(0, sizeof c, &c); }));
  ALLOW("A10-nice", "being nicer", setpriority(PRIO_PROCESS, 0, 5));
  ALLOW("A10-rlimit", "a lower limit", setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64}));
  ALLOW("A10-dumpable", "PR_SET_DUMPABLE", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  ALLOW("A10-name", "PR_SET_NAME", prctl(PR_SET_NAME, "probe", 0, 0, 0));
  ALLOW("A10-subreaper", "PR_SET_CHILD_SUBREAPER", prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  ALLOW("A11-landlock", "Landlock version, where the kernel has it", ({ long r = syscall(NR_landlock_create_ruleset, 0, 0, 1); r < 0 && (errno == ENOSYS || errno == EOPNOTSUPP) ? 0 : r; }));
  ALLOW("A11-seccomp", "a narrower filter of its own", narrow_itself());
  ALLOW("A11-nnp", "no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  PROBE("A12-futex-waitv", "futex_waitv asks the kernel", "EINVAL ENOSYS", FILTER, syscall(NR_futex_waitv, 0, 0, 0, 0, 0));
  PROBE("A12-rseq", "rseq asks the kernel", "EINVAL EBUSY EPERM ENOSYS", FILTER, syscall(SYS_rseq, 1, 0, 0, 0));
  PROBE("A12-mseal", "mseal asks the kernel", "ok EINVAL ENOSYS", FILTER, syscall(NR_mseal, 0, 0, 0));
  PROBE("A12-badfd", "an ordinary error stays an ordinary error", "EBADF", FILTER, read(-1, 0, 0));
}
