/* The harness of probe.c: each probe runs in its own child, for at most two seconds, and prints one JSON line.
   The program is the attacker: it only reports what happened. The test outside of the sandbox judges. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers that older headers lack; since 424 they are the same everywhere. */
enum {
  NR_io_uring_setup = 425, NR_io_uring_enter, NR_io_uring_register, NR_open_tree, NR_move_mount, NR_fsopen,
  NR_fsconfig, NR_fsmount, NR_fspick, NR_pidfd_open, NR_clone3, NR_close_range, NR_openat2, NR_pidfd_getfd,
  NR_faccessat2, NR_process_madvise, NR_epoll_pwait2, NR_mount_setattr, NR_quotactl_fd,
  NR_landlock_create_ruleset, NR_memfd_secret = 447, NR_process_mrelease, NR_futex_waitv,
  NR_set_mempolicy_home_node, NR_cachestat, NR_fchmodat2, NR_statmount = 457, NR_listmount, NR_mseal = 462,
  NR_open_tree_attr = 467, NR_file_getattr, NR_file_setattr, NR_listns
};

#define HIGH (1UL << 32)
#define CLOSED "EPERM ENOSYS EACCES"

/* Which layer must give the safe answer: the filter alone, bubblewrap's flags, or all of pen. */
enum layer { FILTER, BWRAP, PEN };
static const char *const LAYERS[] = {"filter", "bwrap", "pen"};

static char scratch[] = "/tmp/pen-probe-XXXXXX";
static char file[64], missing[64];

static struct { volatile int done; volatile long value; volatile int error; } *shared;

static void report(const char *id, const char *what, const char *want, enum layer layer, int status) {
  const char *outcome = "nothing";
  char text[32];
  if (WIFSIGNALED(status)) {
    snprintf(text, sizeof text, "SIG%s", sigabbrev_np(WTERMSIG(status)));
    outcome = text;
  } else if (shared->done) {
    const char *name = shared->value == -1 ? strerrorname_np(shared->error) : "ok";
    outcome = name ? name : "unknown";
  }
  printf("{\"id\":\"%s\",\"what\":\"%s\",\"want\":\"%s\",\"layer\":\"%s\",\"outcome\":\"%s\",\"value\":%ld}\n", id, what,
         want, LAYERS[layer], outcome, shared->done ? shared->value : -1);
  fflush(stdout);
}

/* True in the child, which must call leave(). */
static int enter(const char *id, const char *what, const char *want, enum layer layer) {
  shared->done = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(2);
    errno = 0;
    return 1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  report(id, what, want, layer, status);
  if (unlink(missing)) rmdir(missing);
  return 0;
}

static void leave(long value) {
  shared->error = errno;
  shared->value = value;
  shared->done = 1;
  _exit(0);
}

#define PROBE(id, what, want, layer, call) do { if (enter(id, what, want, layer)) leave((long)(call)); } while (0)
#define REFUSE(id, what, call) PROBE(id, what, CLOSED, FILTER, call)
#define ALLOW(id, what, call) PROBE(id, what, "ok", FILTER, call)
/* A condition instead of a system call. */
#define HOLDS(condition) ((condition) ? 0 : (errno = EINVAL, -1))

static long status_of(const char *path, const char *key, const char *wanted) {
  char line[256];
  long answer = -2;
  FILE *status = fopen(path, "r");
  while (status && fgets(line, sizeof line, status))
    if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') answer = HOLDS(strstr(line, wanted) != 0);
  if (status) fclose(status);
  return answer;
}
