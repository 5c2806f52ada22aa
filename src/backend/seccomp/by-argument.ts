/** System calls that are ordinary with some arguments and refused with others. */
import type { Arg, Case, Rule } from './rules.ts'

const CLONE = {
  fs: 0x200,
  files: 0x400,
  sysvsem: 0x4_0000,
  // NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME has no bit in clone().
  namespaces: 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000,
}
const SET_ID_BITS = 0o6000
const O_CREAT = 0o100
const O_TMPFILE = 0o20000000
const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16 }
const SOCK = { stream: 1, dgram: 2, raw: 3, seqpacket: 5, mask: 0xf }

const setIdMode = (arg: Arg): Case => ({ when: [{ arg, has: SET_ID_BITS }], answer: 'EPERM' })
const deviceNode = (arg: Arg): Case => ({
  when: [{ arg, mask: 0o170000, is: [0o020000, 0o060000] }],
  answer: 'EPERM',
})

const modeRule = (calls: string, arg: Arg): Rule => ({
  calls,
  answer: 'allow',
  why: 'a setuid or setgid file in a shared directory would be run by the host',
  cases: [setIdMode(arg)],
})

// The mode counts only when a file is created. Without these flags the register holds an old value.
const openRule = (calls: string, flags: Arg, mode: Arg): Rule => ({
  calls,
  answer: 'allow',
  why: 'may not create a file that is setuid or setgid from the start',
  cases: [
    {
      when: [
        { arg: flags, has: O_CREAT | O_TMPFILE },
        { arg: mode, has: SET_ID_BITS },
      ],
      answer: 'EPERM',
    },
  ],
})

const nodeRule = (calls: string, mode: Arg): Rule => ({
  calls,
  answer: 'allow',
  why: 'pipes, sockets and plain files may be made; device nodes and setuid files may not',
  cases: [setIdMode(mode), deviceNode(mode)],
})

export const BY_ARGUMENT: readonly Rule[] = [
  {
    calls: 'clone',
    answer: 'allow',
    why: 'threads and processes, but no new namespace',
    cases: [{ when: [{ arg: 0, has: CLONE.namespaces }], answer: 'EPERM' }],
  },
  {
    calls: 'unshare',
    answer: 'EPERM',
    why: 'a thread may part from its process’s files and directory; namespaces stay as they are',
    cases: [{ when: [{ arg: 0, only: CLONE.fs | CLONE.files | CLONE.sysvsem }], answer: 'allow' }],
  },
  {
    calls: 'ptrace',
    answer: 'allow',
    why: 'a debugger traces the children that asked for it; attaching to others (ATTACH, SEIZE) reaches pid 1',
    cases: [{ when: [{ arg: 0, is: [16, 0x4206] }], answer: 'EPERM' }],
  },
  {
    calls: 'ioctl',
    answer: 'allow',
    why: 'TIOCSTI and TIOCLINUX type into the terminal, TIOCCONS takes the console, TIOCSETD loads line disciplines',
    cases: [{ when: [{ arg: 1, is: [0x5412, 0x541c, 0x541d, 0x5423] }], answer: 'EPERM' }],
  },
  {
    calls: 'personality',
    answer: 'EPERM',
    why: 'Linux itself, the query, and ADDR_NO_RANDOMIZE for debuggers; others make memory executable or emulate',
    cases: [{ when: [{ arg: 0, is: [0, 0x4_0000, 0xffff_ffff] }], answer: 'allow' }],
  },
  {
    calls: 'prctl',
    answer: 'allow',
    why: 'PR_SET_MM lets a process lie about what it runs',
    cases: [{ when: [{ arg: 0, is: [35] }], answer: 'EPERM' }],
  },
  {
    calls: 'seccomp',
    answer: 'allow',
    why: 'programs may narrow themselves further; SECCOMP_FILTER_FLAG_NEW_LISTENER would make them supervisors',
    cases: [
      {
        when: [
          { arg: 0, is: [1] },
          { arg: 1, has: 8 },
        ],
        answer: 'EPERM',
      },
    ],
  },
  {
    calls: 'socket',
    answer: 'EAFNOSUPPORT',
    why: 'TCP, UDP, Unix sockets and NETLINK_ROUTE (lists interfaces); every other family is kernel code that programs do not need',
    cases: [
      {
        when: [
          { arg: 0, is: [AF.unix] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.stream, SOCK.dgram, SOCK.seqpacket] },
        ],
        answer: 'allow',
      },
      {
        when: [
          { arg: 0, is: [AF.inet, AF.inet6] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.stream] },
          { arg: 2, is: [0, 6] },
        ],
        answer: 'allow',
      },
      {
        when: [
          { arg: 0, is: [AF.inet, AF.inet6] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.dgram] },
          { arg: 2, is: [0, 17] },
        ],
        answer: 'allow',
      },
      {
        when: [
          { arg: 0, is: [AF.netlink] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.raw, SOCK.dgram] },
          { arg: 2, is: [0] },
        ],
        answer: 'allow',
      },
      // MPTCP, SCTP, UDP-Lite, ping sockets and other netlink protocols get the answer of a kernel without them.
      {
        when: [
          { arg: 0, is: [AF.inet, AF.inet6] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.stream, SOCK.dgram] },
        ],
        answer: 'EPROTONOSUPPORT',
      },
      { when: [{ arg: 0, is: [AF.netlink] }], answer: 'EPROTONOSUPPORT' },
      { when: [{ arg: 0, is: [AF.unix, AF.inet, AF.inet6] }], answer: 'EPERM' },
    ],
  },
  {
    calls: 'socketpair',
    answer: 'EAFNOSUPPORT',
    why: 'Unix sockets only',
    cases: [
      {
        when: [
          { arg: 0, is: [AF.unix] },
          { arg: 1, mask: SOCK.mask, is: [SOCK.stream, SOCK.dgram, SOCK.seqpacket] },
        ],
        answer: 'allow',
      },
    ],
  },
  {
    calls: 'setsockopt',
    answer: 'allow',
    why: 'TCP_ULP puts kernel TLS and others under a TCP socket; libraries work without it',
    cases: [
      {
        when: [
          { arg: 1, is: [6] },
          { arg: 2, is: [31] },
        ],
        answer: 'ENOPROTOOPT',
      },
    ],
  },
  modeRule('chmod fchmod creat mkdir', 1),
  modeRule('fchmodat fchmodat2 mkdirat', 2),
  openRule('open', 1, 2),
  openRule('openat', 2, 3),
  nodeRule('mknod', 1),
  nodeRule('mknodat', 2),
]

/**
 * Neither Landlock nor a mount judges anonymous files. One with MFD_NOEXEC_SEAL cannot be executed, but the loader
 * still maps it as code. So the call does not exist, as on an old kernel.
 */
export const EXEC_LISTED: readonly Rule[] = [
  {
    calls: 'memfd_create',
    answer: 'ENOSYS',
    why: 'a program could be written to it and run by the loader; callers then use a file in /tmp',
  },
]
