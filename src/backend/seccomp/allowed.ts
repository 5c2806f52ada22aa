/**
 * Calls that ordinary unprivileged programs make on their own objects. The kernel's checks and the namespaces limit
 * them. Calls whose arguments matter are in `by-argument.ts`.
 */
import type { Rule } from './rules.ts'

const allow = (why: string, calls: string): Rule => ({ calls, answer: 'allow', why })

export const ALLOWED: readonly Rule[] = [
  allow(
    'reading and writing',
    `read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile splice tee vmsplice
    copy_file_range readahead fadvise64 sync fsync fdatasync syncfs sync_file_range truncate ftruncate fallocate
    cachestat`,
  ),
  allow(
    'files and directories that the mounts show',
    `close close_range stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents
    getdents64 getcwd chdir fchdir rename renameat renameat2 rmdir link linkat unlink unlinkat symlink symlinkat
    readlink readlinkat chown fchown lchown fchownat umask utime utimes utimensat futimesat setxattr lsetxattr
    fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat
    removexattr lremovexattr fremovexattr removexattrat dup dup2 dup3 fcntl flock pipe pipe2 memfd_create
    inotify_init inotify_init1 inotify_add_watch inotify_rm_watch`,
  ),
  allow(
    'waiting for events',
    `poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
    eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime io_setup io_destroy io_getevents
    io_pgetevents io_submit io_cancel`,
  ),
  allow(
    'its own memory',
    `mmap mprotect munmap brk mremap msync mincore madvise process_madvise process_mrelease mlock mlock2 munlock
    mlockall munlockall remap_file_pages pkey_mprotect pkey_alloc pkey_free map_shadow_stack mseal`,
  ),
  allow(
    'processes and threads of its own pid namespace',
    `fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open pidfd_send_signal getpid
    getppid gettid getpgid getpgrp setpgid getsid setsid set_tid_address set_robust_list get_robust_list futex
    futex_waitv futex_wake futex_wait futex_requeue rseq rseq_slice_yield membarrier arch_prctl restart_syscall
    uretprobe uprobe`,
  ),
  allow(
    'signals',
    `rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo
    rt_sigsuspend sigaltstack pause alarm getitimer setitimer`,
  ),
  allow(
    'identity: without capabilities it can only give up',
    `getuid geteuid getgid getegid getgroups getresuid getresgid setuid setgid setreuid setregid setresuid setresgid
    setfsuid setfsgid setgroups capget capset`,
  ),
  allow(
    'scheduling and limits: without capabilities only downwards',
    `sched_yield sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval sched_setaffinity sched_getaffinity sched_setattr sched_getattr
    getpriority setpriority ioprio_set ioprio_get getrlimit setrlimit prlimit64 getrusage getcpu`,
  ),
  allow(
    'time, entropy and facts about the system',
    `time times gettimeofday nanosleep clock_gettime clock_getres clock_nanosleep timer_create timer_settime
    timer_gettime timer_getoverrun timer_delete getrandom uname sysinfo`,
  ),
  allow(
    'sockets that exist already, and IPC of its own namespace',
    `connect accept accept4 bind listen shutdown sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg getsockname
    getpeername getsockopt shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`,
  ),
  allow(
    'sandboxes inside the sandbox: these only take away',
    'landlock_create_ruleset landlock_add_rule landlock_restrict_self lsm_get_self_attr lsm_list_modules',
  ),
]
