/* Modes, devices, terminals, and files that change or reveal the host. */
static long open_then_close(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd >= 0) close(fd);
  return fd;
}

/* Opens for writing, without writing. */
#define CLOSED_FILE "EPERM EACCES ENOENT EROFS ENXIO ENODEV ENOTDIR EIO EISDIR"
#define NO_WRITE(id, path) PROBE(id, "write-open of " path, CLOSED_FILE, PEN, open_then_close(path, O_WRONLY))
#define NO_READ(id, path) PROBE(id, "read of " path, CLOSED_FILE, PEN, open_then_close(path, O_RDONLY))

static long write_to(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd < 0 ? -1 : write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

static long bytes_of(const char *path) {
  char text[4096];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? 0 : read(fd, text, sizeof text);
}

/* Pipes, sockets and events have no path. The sandbox's own devices are below /dev. */
static int host_files_of_init(void) {
  char link[64], target[4096];
  int found = 0;
  for (int i = 0; i < 256; i++) {
    snprintf(link, sizeof link, "/proc/1/fd/%d", i);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n > 0) target[n] = 0;
    found += n > 0 && target[0] == '/' && strncmp(target, "/dev/", 5) != 0;
  }
  return found;
}

static void probe_modes(void) {
  static const unsigned long modes[] = {04755, 02755, 06755, 04000, 02000, HIGH | 04755};
  char id[64], what[96];
  int fd = open(file, O_RDWR);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    unsigned long m = modes[i];
#define MODE(name, call) \
  snprintf(id, sizeof id, "C70-" name "-%lo", m), snprintf(what, sizeof what, name " with mode %lo", m); \
  REFUSE(id, what, call)
    MODE("fchmod", syscall(SYS_fchmod, fd, m));
    MODE("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, file, m));
    MODE("fchmodat2", syscall(NR_fchmodat2, AT_FDCWD, file, m, 0));
    MODE("openat", syscall(SYS_openat, AT_FDCWD, missing, O_CREAT | O_RDWR, m));
    MODE("tmpfile", syscall(SYS_openat, AT_FDCWD, scratch, O_TMPFILE | O_RDWR, m));
    MODE("mkdirat", syscall(SYS_mkdirat, AT_FDCWD, missing, m));
    MODE("mknodat", syscall(SYS_mknodat, AT_FDCWD, missing, S_IFREG | m, 0));
#ifdef SYS_chmod
    MODE("chmod", syscall(SYS_chmod, file, m));
    MODE("creat", syscall(SYS_creat, missing, m));
    MODE("open", syscall(SYS_open, missing, O_CREAT | O_RDWR, m));
    MODE("mkdir", syscall(SYS_mkdir, missing, m));
    MODE("mknod", syscall(SYS_mknod, missing, S_IFREG | m, 0));
#endif
  }
  PROBE("C70-openat2", "openat2 with a setuid mode", "ENOSYS", FILTER,
        syscall(NR_openat2, AT_FDCWD, missing, (uint64_t[3]){O_CREAT | O_RDWR, 04755, 0}, 24));
  REFUSE("C71-node-null", "node of /dev/null", syscall(SYS_mknodat, AT_FDCWD, missing, S_IFCHR | 0600, 0x103));
  REFUSE("C71-node-mem", "node of /dev/mem", syscall(SYS_mknodat, AT_FDCWD, missing, S_IFCHR | 0600, 0x101));
  REFUSE("C71-node-disk", "node of a disk", syscall(SYS_mknodat, AT_FDCWD, missing, S_IFBLK | 0600, 0x800));
  REFUSE("C71-node-whiteout", "whiteout node", syscall(SYS_mknodat, AT_FDCWD, missing, S_IFCHR, 0));
}

/* Its own controlling terminal: without the filter TIOCSTI works on it. */
static int own_terminal(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return -1;
  setsid();
  return open(ptsname(master), O_RDWR);
}

static long terminal_ioctl(unsigned long command, const void *arg) {
  int fd = own_terminal();
  if (fd < 0) leave(-2);
  return syscall(SYS_ioctl, fd, command, arg);
}

static void probe_terminal(void) {
  static const unsigned long tops[] = {0, HIGH, 0xffffffff00000000UL};
  char id[64], what[96], type = 'x';
  for (size_t i = 0; i < 3; i++) {
    snprintf(what, sizeof what, "with 0x%lx above", tops[i] >> 32);
#define TTY(name, number, arg) snprintf(id, sizeof id, "C40-" name "-%zu", i); REFUSE(id, what, terminal_ioctl(tops[i] | number, arg))
    TTY("tiocsti", 0x5412, &type);
    TTY("tioclinux", 0x541c, &type);
    TTY("tiocsetd", 0x5423, (&(int){0}));
    TTY("tioccons", 0x541d, 0);
  }
  REFUSE("C40-tiocsti-pipe", "TIOCSTI on what is no terminal", syscall(SYS_ioctl, -1, 0x5412, &type));
  PROBE("C42-host-tty", "a controlling terminal of the host", "ENXIO ENOENT EACCES EPERM", PEN, open_then_close("/dev/tty", O_RDWR));
}

static void probe_host_files(void) {
  NO_WRITE("C50-core-pattern", "/proc/sys/kernel/core_pattern");
  NO_WRITE("C50-modprobe", "/proc/sys/kernel/modprobe");
  NO_WRITE("C50-hostname", "/proc/sys/kernel/hostname");
  PROBE("C50-ns-last-pid", "a write to /proc/sys/kernel/ns_last_pid", CLOSED_FILE, PEN, write_to("/proc/sys/kernel/ns_last_pid", "9"));
  NO_WRITE("C50-randomize", "/proc/sys/kernel/randomize_va_space");
  NO_WRITE("C50-panic", "/proc/sys/kernel/panic");
  NO_WRITE("C50-drop-caches", "/proc/sys/vm/drop_caches");
  NO_WRITE("C50-overcommit", "/proc/sys/vm/overcommit_memory");
  NO_WRITE("C50-mmap-min", "/proc/sys/vm/mmap_min_addr");
  NO_WRITE("C50-symlinks", "/proc/sys/fs/protected_symlinks");
  NO_WRITE("C50-suid-dumpable", "/proc/sys/fs/suid_dumpable");
  NO_WRITE("C50-binfmt", "/proc/sys/fs/binfmt_misc/register");
  NO_WRITE("C50-sysrq", "/proc/sysrq-trigger");
  NO_WRITE("C50-irq", "/proc/irq/default_smp_affinity");
  NO_WRITE("C50-uevent", "/sys/kernel/uevent_helper");
  NO_WRITE("C50-power", "/sys/power/state");
  NO_WRITE("C50-vmcoreinfo", "/sys/kernel/mm/transparent_hugepage/enabled");
  NO_WRITE("C65-release-agent", "/sys/fs/cgroup/memory/release_agent");
  NO_WRITE("C65-cgroup-procs", "/sys/fs/cgroup/memory/cgroup.procs");
  NO_WRITE("C65-cgroup2-procs", "/sys/fs/cgroup/cgroup.procs");
  NO_WRITE("C65-unified-procs", "/sys/fs/cgroup/unified/cgroup.procs");
  NO_WRITE("C52-mem", "/dev/mem");
  NO_WRITE("C52-port", "/dev/port");
  NO_WRITE("C52-kmsg", "/dev/kmsg");
  NO_WRITE("C52-kvm", "/dev/kvm");
  NO_WRITE("C52-fuse", "/dev/fuse");
  NO_WRITE("C52-loop", "/dev/loop-control");
  NO_WRITE("C52-tun", "/dev/net/tun");
  NO_WRITE("C52-vsock", "/dev/vsock");
  NO_WRITE("C52-vhost", "/dev/vhost-net");
  NO_WRITE("C52-uinput", "/dev/uinput");
  NO_WRITE("C52-mapper", "/dev/mapper/control");
  NO_WRITE("C52-nvram", "/dev/nvram");
  NO_WRITE("C52-tty0", "/dev/tty0");
  NO_READ("C51-kcore", "/proc/kcore");
  NO_READ("C51-kmsg", "/proc/kmsg");
  NO_READ("C51-timer-list", "/proc/timer_list");
  NO_READ("C51-sched-debug", "/proc/sched_debug");
  NO_READ("C51-shadow", "/etc/shadow");
  NO_READ("C51-gshadow", "/etc/gshadow");
  /* The sandbox can write its init's memory, so the init must have no more rights than this process. */
  PROBE("C51-environ", "the init has no variables", "ok", PEN, HOLDS(bytes_of("/proc/1/environ") == 0));
  PROBE("C51-init-caps", "the init has no capability", "ok", BWRAP, status_of("/proc/1/status", "CapPrm", "\t0000000000000000\n"));
  PROBE("C51-init-seccomp", "the init is under the filter", "ok", FILTER, status_of("/proc/1/status", "Seccomp", "\t2\n"));
  PROBE("C51-init-files", "the init holds no file of the host", "ok", PEN, HOLDS(host_files_of_init() == 0));
  NO_READ("C51-firmware", "/sys/firmware/dmi/tables/DMI");
  NO_READ("C51-debugfs", "/sys/kernel/debug");
  NO_READ("C51-docker", "/var/run/docker.sock");
}
