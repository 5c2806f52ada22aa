/** System calls that are refused with all arguments. */
import type { Rule } from './rules.ts'

export const REFUSED: readonly Rule[] = [
  {
    calls: 'setns',
    answer: 'EPERM',
    why: 'joins a namespace of another process',
  },
  {
    calls: 'clone3',
    answer: 'ENOSYS',
    why: 'its flags are in memory where a filter cannot see them; C libraries then use clone',
  },
  {
    calls: 'openat2',
    answer: 'ENOSYS',
    why: 'its mode is in memory and could carry setuid; callers then use openat',
  },
  {
    calls: `mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick
      mount_setattr`,
    answer: 'EPERM',
    why: 'changes the file system view that the policy built',
  },
  {
    calls: 'statmount listmount listns file_getattr file_setattr lsm_set_self_attr',
    answer: 'ENOSYS',
    why: 'new, needed by nothing that runs on older kernels, and about mounts, namespaces or labels',
  },
  {
    calls: 'bpf perf_event_open userfaultfd',
    answer: 'EPERM',
    why: 'large kernel interfaces with a long record of privilege escalation',
  },
  {
    calls: 'io_uring_setup io_uring_enter io_uring_register',
    answer: 'EPERM',
    why: 'runs other system calls (socket, openat2) that this filter then never sees',
  },
  {
    calls: 'add_key request_key keyctl',
    answer: 'EPERM',
    why: 'keyrings are not namespaced: they hold secrets of the host session',
  },
  {
    calls: 'process_vm_readv process_vm_writev',
    answer: 'ENOSYS',
    why: 'memory of other processes; debuggers then read it through ptrace',
  },
  {
    calls: 'pidfd_getfd kcmp',
    answer: 'EPERM',
    why: 'takes or compares descriptors of other processes, pid 1 with its host side included',
  },
  {
    calls: 'open_by_handle_at name_to_handle_at fanotify_init fanotify_mark',
    answer: 'EPERM',
    why: 'reaches files by handle, past the mounts that hide them',
  },
  {
    calls: 'init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff',
    answer: 'EPERM',
    why: 'changes the running kernel',
  },
  {
    calls: 'syslog acct quotactl quotactl_fd vhangup',
    answer: 'EPERM',
    why: 'administers the host or reads its log',
  },
  {
    calls: 'settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname',
    answer: 'EPERM',
    why: 'sets the clock or the name of the machine',
  },
  {
    calls: 'iopl ioperm modify_ldt',
    answer: 'EPERM',
    why: 'hardware ports and segment tables; only emulators of old systems use them',
  },
  {
    calls: 'mbind set_mempolicy get_mempolicy set_mempolicy_home_node move_pages migrate_pages',
    answer: 'EPERM',
    why: 'moves memory between nodes, of other processes too; with get_mempolicy refused libnuma turns itself off',
  },
  {
    calls: 'memfd_secret',
    answer: 'ENOSYS',
    why: 'memory that the host can neither inspect nor reclaim',
  },
  {
    calls: `_sysctl uselib ustat sysfs create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg
      afs_syscall tuxcall security set_thread_area get_thread_area lookup_dcookie epoll_ctl_old epoll_wait_old
      vserver`,
    answer: 'ENOSYS',
    why: 'removed, or never implemented',
  },
]
