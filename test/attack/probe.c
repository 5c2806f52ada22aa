/* A hostile program: tries known sandbox escapes and prints one JSON line per try.
   cc -O1 -static -o probe probe.c; syscalls.test.ts runs and judges it. */
#include "probe.h"
#include "probe-kernel.h"
#include "probe-files.h"
#include "probe-sockets.h"
#include "probe-allowed.h"

static long status_line(const char *key, const char *wanted) {
  return status_of("/proc/self/status", key, wanted);
}

static void probe_identity(void) {
  PROBE("C01-no-new-privs", "no_new_privs is set", "ok", BWRAP, status_line("NoNewPrivs", "\t1\n"));
  PROBE("C02-seccomp", "a filter is in force", "ok", FILTER, status_line("Seccomp", "\t2\n"));
  static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
  char id[64];
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    snprintf(id, sizeof id, "C03-%s", sets[i]);
    PROBE(id, "the capability set is empty", "ok", BWRAP, status_line(sets[i], "\t0000000000000000\n"));
  }
  PROBE("C04-core", "no core dumps", "ok", PEN, ({ struct rlimit r; getrlimit(RLIMIT_CORE, &r); HOLDS(r.rlim_max <= 1); }));
  PROBE("C60-pid", "few processes are visible", "ok", BWRAP, HOLDS(getpid() < 4096 && kill(4, 0) == -1 ? 1 : getppid() < 16));
  PROBE("C62-descriptors", "no stray descriptor", "ok", PEN, ({ int n = 0; for (int i = 3; i < 1024; i++) n += fcntl(i, F_GETFD) != -1; HOLDS(n == 0); }));
  PROBE("C64-setuid-root", "becoming root", "EPERM EINVAL", PEN, getuid() == 0 ? 0 : setuid(0));
}

static void probe_foreign_abi(void) {
#ifdef __x86_64__
  PROBE("C29-x32", "getpid by the x32 ABI", "SIGSYS", FILTER, syscall(0x40000000 | SYS_getpid));
  PROBE("C29-x32-ptrace", "ptrace by its x32 number", "SIGSYS", FILTER, syscall(0x40000000 | 521, 16, 1, 0, 0));
  PROBE("C29-x32-socket", "vsock by the x32 ABI", "SIGSYS", FILTER, syscall(0x40000000 | SYS_socket, 40, 1, 0));
  PROBE("C29-x32-unmarked", "an x32 number without its mark", "ENOSYS", FILTER, syscall(521, 16, 1, 0, 0));
  PROBE("C29-i386", "getpid by int 0x80", "SIGSYS", FILTER, ({ long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); r; }));
  PROBE("C29-i386-socketcall", "socketcall by int 0x80", "SIGSYS", FILTER, ({ long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(102), "b"(99), "c"(0) : "memory"); r; }));
#endif
  PROBE("C29-minus-one", "the number -1", "ENOSYS", FILTER, syscall(-1));
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--nothing") == 0) return 0;
  /* With capabilities the probes would really mount and trace. Outside of a sandbox this program does nothing. */
  if (status_line("CapEff", "\t0000000000000000\n")) return fputs("probe: run it without capabilities\n", stderr), 3;
  shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !mkdtemp(scratch)) return perror("probe"), 2;
  snprintf(file, sizeof file, "%s/file", scratch);
  snprintf(missing, sizeof missing, "%s/missing", scratch);
  int fd = open(file, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || write(fd, "x", 1) != 1 || close(fd)) return perror("probe"), 2;
  probe_identity();
  probe_foreign_abi();
  probe_namespaces();
  probe_mounts();
  probe_processes();
  probe_interfaces();
  probe_modes();
  probe_terminal();
  probe_host_files();
  probe_families();
  probe_allowed();
  unlink(file), rmdir(scratch);
  return 0;
}
