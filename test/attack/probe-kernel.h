/* Namespaces, mounts, other processes, kernel interfaces. Arguments are chosen so that a call that succeeds
   does no harm: wrong magic, missing paths, null pointers, or the value that is already set. */
static long clone_with(unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return pid;
}

static long clone3_with(uint64_t flags) {
  uint64_t args[11] = {flags, 0, 0, 0, SIGCHLD};
  long pid = syscall(NR_clone3, args, sizeof args);
  if (pid == 0) _exit(0);
  return pid;
}

static long process_vm(long call, pid_t pid) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  return syscall(call, pid, &here, 1, &there, 1, 0);
}

static long pidfd_getfd_of(pid_t pid) {
  int fd = syscall(NR_pidfd_open, pid, 0);
  return fd < 0 ? -2 : syscall(NR_pidfd_getfd, fd, 0, 0);
}

static pid_t sleeper(void) {
  pid_t pid = fork();
  if (pid == 0) alarm(2), pause(), _exit(0);
  return pid;
}

static void probe_namespaces(void) {
  static const struct { const char *name; unsigned long flag; } kinds[] = {
    {"mnt", CLONE_NEWNS}, {"cgroup", CLONE_NEWCGROUP}, {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC},
    {"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET}};
  char id[64], what[96];
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    unsigned long user = CLONE_NEWUSER | kinds[i].flag;
    snprintf(id, sizeof id, "C10-unshare-%s", kinds[i].name);
    snprintf(what, sizeof what, "unshare of a new %s namespace", kinds[i].name);
    REFUSE(id, what, syscall(SYS_unshare, user));
    snprintf(id, sizeof id, "C10-clone-%s", kinds[i].name);
    snprintf(what, sizeof what, "clone into a new %s namespace", kinds[i].name);
    REFUSE(id, what, clone_with(user));
    snprintf(id, sizeof id, "C11-clone3-%s", kinds[i].name);
    snprintf(what, sizeof what, "clone3 into a new %s namespace", kinds[i].name);
    PROBE(id, what, "ENOSYS", FILTER, clone3_with(user));
  }
  REFUSE("C10-unshare-time", "unshare of a time namespace", syscall(SYS_unshare, CLONE_NEWUSER | 0x80));
  REFUSE("C10-clone-high", "clone into a user namespace with dirt in the high half", clone_with(HIGH | CLONE_NEWUSER));
  REFUSE("C10-unshare-high", "unshare with a flag in the high half", syscall(SYS_unshare, HIGH));
  PROBE("C11-clone3-plain", "clone3 of an ordinary process: the library falls back", "ENOSYS", FILTER, clone3_with(0));
  REFUSE("C14-setns-self", "setns to its own namespace", syscall(SYS_setns, open("/proc/self/ns/uts", O_RDONLY), 0));
  REFUSE("C14-setns-user", "setns to its own user namespace", syscall(SYS_setns, open("/proc/self/ns/user", O_RDONLY), 0));
  REFUSE("C14-setns-bad", "setns with a bad descriptor", syscall(SYS_setns, -1, 0));
}

static void probe_mounts(void) {
  REFUSE("C12-mount-tmpfs", "mount of a tmpfs", syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, 0));
  REFUSE("C12-mount-bind", "bind mount on itself", syscall(SYS_mount, "/tmp", "/tmp", 0, 0x1000, 0));
  REFUSE("C12-mount-remount", "remount of / read-write", syscall(SYS_mount, 0, "/", 0, 0x20 | 0x1000, 0));
  REFUSE("C12-mount-bad", "mount on a missing path", syscall(SYS_mount, "x", "/missing", "tmpfs", 0, 0));
  REFUSE("C12-mount-proc", "mount of another proc", syscall(SYS_mount, "proc", "/tmp", "proc", 0, 0));
  REFUSE("C12-mount-cgroup", "mount of a cgroup hierarchy", syscall(SYS_mount, "x", "/tmp", "cgroup", 0, "rdma"));
  REFUSE("C12-umount", "umount of a missing path", syscall(SYS_umount2, "/missing", 0));
  REFUSE("C12-umount-detach", "lazy umount of a missing path", syscall(SYS_umount2, "/missing", 2));
  REFUSE("C12-pivot", "pivot_root to a missing path", syscall(SYS_pivot_root, "/missing", "/missing"));
  REFUSE("C12-chroot", "chroot to a missing path", syscall(SYS_chroot, "/missing"));
  REFUSE("C13-open-tree", "open_tree of a copy of /tmp", syscall(NR_open_tree, AT_FDCWD, "/tmp", 1));
  REFUSE("C13-open-tree-path", "open_tree without a copy", syscall(NR_open_tree, AT_FDCWD, "/tmp", 0));
  REFUSE("C13-move-mount", "move_mount of nothing", syscall(NR_move_mount, -1, "", -1, "", 0));
  REFUSE("C13-fsopen", "fsopen of tmpfs", syscall(NR_fsopen, "tmpfs", 0));
  REFUSE("C13-fsopen-ext4", "fsopen of a disk format", syscall(NR_fsopen, "ext4", 0));
  REFUSE("C13-fsconfig", "fsconfig on nothing", syscall(NR_fsconfig, -1, 0, 0, 0, 0));
  REFUSE("C13-fsmount", "fsmount of nothing", syscall(NR_fsmount, -1, 0, 0));
  REFUSE("C13-fspick", "fspick of /tmp", syscall(NR_fspick, AT_FDCWD, "/tmp", 0));
  REFUSE("C13-mount-setattr", "mount_setattr on nothing", syscall(NR_mount_setattr, -1, "", 0, 0, 0));
  REFUSE("C13-statmount", "statmount", syscall(NR_statmount, 0, 0, 0, 0));
  REFUSE("C13-listmount", "listmount", syscall(NR_listmount, 0, 0, 0, 0));
  REFUSE("C13-open-tree-attr", "open_tree_attr", syscall(NR_open_tree_attr, -1, "", 0, 0, 0));
  REFUSE("C13-listns", "listns", syscall(NR_listns, 0, 0, 0, 0));
  REFUSE("C13-file-setattr", "file_setattr", syscall(NR_file_setattr, -1, "", 0, 0, 0));
}

static void probe_processes(void) {
  /* Where it works, SEIZE does not stop its victim. ATTACH would, so it gets its own process. */
  REFUSE("C25-attach", "ptrace attach to a process that did not ask", ptrace(PTRACE_ATTACH, sleeper(), 0, 0));
  REFUSE("C25-seize", "ptrace seize of pid 1", ptrace(PTRACE_SEIZE, 1, 0, 0));
  REFUSE("C25-seize-parent", "ptrace seize of its parent", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
  REFUSE("C25-attach-missing", "ptrace attach to a missing process", ptrace(PTRACE_ATTACH, 99999, 0, 0));
  PROBE("C25-peek", "ptrace peek at pid 1 without a trace", "ESRCH EPERM", FILTER, syscall(SYS_ptrace, PTRACE_PEEKDATA, 1, 0x400000, &(long){0}));
  PROBE("C25-seize-high", "ptrace seize with dirt in the high half", CLOSED " ESRCH EIO", FILTER, syscall(SYS_ptrace, HIGH | PTRACE_SEIZE, 1, 0, 0));
  REFUSE("C25-vm-read", "process_vm_readv of pid 1", process_vm(SYS_process_vm_readv, 1));
  REFUSE("C25-vm-write", "process_vm_writev to a missing process", process_vm(SYS_process_vm_writev, 99999));
  REFUSE("C25-vm-read-self", "process_vm_readv of itself", process_vm(SYS_process_vm_readv, getpid()));
  REFUSE("C25-getfd", "pidfd_getfd of pid 1", pidfd_getfd_of(1));
  REFUSE("C25-getfd-self", "pidfd_getfd of itself", pidfd_getfd_of(getpid()));
  REFUSE("C25-kcmp", "kcmp with pid 1", syscall(SYS_kcmp, getpid(), 1, 0, 0, 0));
  REFUSE("C25-kcmp-self", "kcmp with itself", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
  REFUSE("C25-move-pages", "move_pages of a missing process", syscall(SYS_move_pages, 99999, 0, 0, 0, 0, 0));
  REFUSE("C25-migrate", "migrate_pages of a missing process", syscall(SYS_migrate_pages, 99999, 0, 0, 0));
  REFUSE("C25-mbind", "mbind of nothing", syscall(SYS_mbind, 0, 0, 0, 0, 0, 0));
  REFUSE("C25-mempolicy", "set_mempolicy to the default", syscall(SYS_set_mempolicy, 0, 0, 0));
  REFUSE("C25-get-mempolicy", "get_mempolicy, so that libnuma stays off", syscall(SYS_get_mempolicy, 0, 0, 0, 0, 0));
  REFUSE("C25-home-node", "set_mempolicy_home_node", syscall(NR_set_mempolicy_home_node, 0, 0, 0, 0));
  REFUSE("C25-set-mm", "prctl PR_SET_MM", prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0));
  REFUSE("C25-listener", "a seccomp filter with a listener", syscall(SYS_seccomp, 1, 8, 0));
  PROBE("C25-kill-init", "signal 0 to pid 1 reaches only the sandbox", "ok EPERM", FILTER, kill(1, 0));
}

static void probe_interfaces(void) {
  REFUSE("C20-bpf-map", "bpf map", syscall(SYS_bpf, 0, (uint32_t[32]){1, 4, 4, 1}, 128));
  REFUSE("C20-bpf-load", "bpf program", syscall(SYS_bpf, 5, (uint32_t[32]){1}, 128));
  REFUSE("C20-bpf-bad", "bpf with a bad command", syscall(SYS_bpf, -1, 0, 0));
  REFUSE("C21-uring-setup", "io_uring_setup", syscall(NR_io_uring_setup, 1, (uint32_t[30]){0}));
  REFUSE("C21-uring-enter", "io_uring_enter", syscall(NR_io_uring_enter, -1, 0, 0, 0, 0, 0));
  REFUSE("C21-uring-register", "io_uring_register", syscall(NR_io_uring_register, -1, 0, 0, 0));
  REFUSE("C22-add-key", "add_key to the process keyring", syscall(SYS_add_key, "user", "pen:probe", "x", 1, -2));
  REFUSE("C22-request-key", "request_key", syscall(SYS_request_key, "user", "pen:probe", 0, 0));
  REFUSE("C22-keyctl-session", "id of the session keyring", syscall(SYS_keyctl, 0, -3, 0, 0, 0));
  REFUSE("C22-keyctl-read", "read of the user keyring", syscall(SYS_keyctl, 11, -4, 0, 0, 0));
  REFUSE("C22-keyctl-join", "join of a new session keyring", syscall(SYS_keyctl, 1, 0, 0, 0, 0));
  REFUSE("C23-perf", "perf_event_open of itself", syscall(SYS_perf_event_open, (uint32_t[32]){1, 128}, 0, -1, -1, 0));
  REFUSE("C23-perf-bad", "perf_event_open of nothing", syscall(SYS_perf_event_open, 0, 0, -1, -1, 0));
  REFUSE("C24-userfaultfd", "userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
  REFUSE("C24-userfaultfd-user", "userfaultfd for user mode only", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
  REFUSE("C26-memfd-secret", "memfd_secret", syscall(NR_memfd_secret, 0));
  REFUSE("C27-reboot", "reboot with wrong magic", syscall(SYS_reboot, 0, 0, 0, 0));
  REFUSE("C27-kexec", "kexec_load with bad flags", syscall(SYS_kexec_load, 0, 0, 0, ~0UL));
  REFUSE("C27-kexec-file", "kexec_file_load with bad flags", syscall(SYS_kexec_file_load, -1, -1, 0, 0, ~0UL));
  REFUSE("C27-init-module", "init_module of nothing", syscall(SYS_init_module, 0, 0, ""));
  REFUSE("C27-finit-module", "finit_module of nothing", syscall(SYS_finit_module, -1, "", 0));
  REFUSE("C27-delete-module", "delete_module of a missing module", syscall(SYS_delete_module, "pen_missing", O_NONBLOCK));
  REFUSE("C27-swapon", "swapon of a missing path", syscall(SYS_swapon, "/missing", 0));
  REFUSE("C27-swapoff", "swapoff of a missing path", syscall(SYS_swapoff, "/missing"));
  REFUSE("C27-syslog", "size of the kernel log", syscall(SYS_syslog, 10, 0, 0));
  REFUSE("C27-syslog-read", "read of the kernel log", syscall(SYS_syslog, 3, (char[16]){0}, 16));
  REFUSE("C27-acct", "acct on a missing path", syscall(SYS_acct, "/missing"));
  REFUSE("C27-quotactl", "quotactl sync", syscall(SYS_quotactl, 0x80000100, 0, 0, 0));
  REFUSE("C27-quotactl-fd", "quotactl_fd on nothing", syscall(NR_quotactl_fd, -1, 0, 0, 0));
  REFUSE("C27-settimeofday", "settimeofday of nothing", syscall(SYS_settimeofday, 0, 0));
  REFUSE("C27-clock-settime", "clock_settime of a bad clock", syscall(SYS_clock_settime, 99, 0));
  REFUSE("C27-adjtimex", "adjtimex", syscall(SYS_adjtimex, 0));
  REFUSE("C27-clock-adjtime", "clock_adjtime", syscall(SYS_clock_adjtime, 0, 0));
  REFUSE("C27-sethostname", "sethostname", syscall(SYS_sethostname, "", -1));
  REFUSE("C27-setdomainname", "setdomainname", syscall(SYS_setdomainname, "", -1));
  REFUSE("C27-vhangup", "vhangup", syscall(SYS_vhangup));
  REFUSE("C27-handle-open", "open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, (int[8]){8, 1, 2}, 0));
  REFUSE("C27-handle-name", "name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/tmp", (int[40]){128}, &(int){0}, 0));
  REFUSE("C27-fanotify", "fanotify_init", syscall(SYS_fanotify_init, 0x200, 0));
  REFUSE("C27-fanotify-mark", "fanotify_mark", syscall(SYS_fanotify_mark, -1, 0, 0, -1, 0));
  REFUSE("C27-lookup-dcookie", "lookup_dcookie", syscall(SYS_lookup_dcookie, 0, 0, 0));
#ifdef __x86_64__
  REFUSE("C27-iopl", "iopl", syscall(SYS_iopl, 0));
  REFUSE("C27-ioperm", "ioperm", syscall(SYS_ioperm, 0, 0, 0));
  REFUSE("C27-modify-ldt", "modify_ldt", syscall(SYS_modify_ldt, 0, 0, 0));
  REFUSE("C27-uselib", "uselib", syscall(SYS_uselib, "/missing"));
  REFUSE("C27-ustat", "ustat", syscall(SYS_ustat, 0, 0));
  REFUSE("C27-sysfs", "sysfs", syscall(SYS_sysfs, 3));
#endif
  REFUSE("C27-future", "a call of a kernel that does not exist yet", syscall(499, 0, 0, 0, 0, 0, 0));
  static const unsigned long personas[] = {0x400000, 0x440000, 0x8, 0x20000, 0x100000, 0x1, 0x4, 0x10, HIGH | 0x400000};
  char id[64], what[96];
  for (size_t i = 0; i < sizeof personas / sizeof *personas; i++) {
    snprintf(id, sizeof id, "C28-personality-%lx", personas[i]);
    snprintf(what, sizeof what, "personality 0x%lx", personas[i]);
    REFUSE(id, what, syscall(SYS_personality, personas[i]));
  }
}
