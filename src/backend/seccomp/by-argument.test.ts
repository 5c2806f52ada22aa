import { describe, expect, test } from 'bun:test'
import { answer } from '../../../test/bpf-model.ts'
import type { Answer } from './rules.ts'
import type { SeccompArch } from './syscalls.ts'

const ARCHES: readonly SeccompArch[] = ['x64', 'arm64']

describe('P12 by argument', () => {
  const TOP = 1n << 32n

  test('a namespace is refused, a thread is not', () => {
    const thread = 0x3d0f00
    for (const arch of ARCHES) {
      expect(answer(arch, 'clone', [thread])).toBe('allow')
      expect(answer(arch, 'clone', [17])).toBe('allow')
      for (const bit of [17, 25, 26, 27, 28, 29, 30]) {
        expect(answer(arch, 'clone', [2 ** bit])).toBe('EPERM')
        expect(answer(arch, 'clone', [TOP | BigInt(thread) | (1n << BigInt(bit))])).toBe('EPERM')
        expect(answer(arch, 'unshare', [2 ** bit])).toBe('EPERM')
      }
      expect(answer(arch, 'unshare', [0x600])).toBe('allow')
      expect(answer(arch, 'unshare', [0x80])).toBe('EPERM')
      expect(answer(arch, 'unshare', [TOP])).toBe('EPERM')
      expect(answer(arch, 'clone3')).toBe('ENOSYS')
      expect(answer(arch, 'setns')).toBe('EPERM')
    }
  })

  test('TIOCSTI is refused with a dirty high half, the window size is not', () => {
    for (const command of [0x5412, 0x541c, 0x541d, 0x5423]) {
      expect(answer('x64', 'ioctl', [0, command])).toBe('EPERM')
      expect(answer('x64', 'ioctl', [0, TOP | BigInt(command)])).toBe('EPERM')
      expect(answer('x64', 'ioctl', [0, 0xffff_ffff_0000_0000n | BigInt(command)])).toBe('EPERM')
    }
    for (const command of [0x5413, 0x541b, 0x540e, 0x5401])
      expect(answer('x64', 'ioctl', [0, command])).toBe('allow')
  })

  test('setuid and setgid modes are refused in every call with a mode, others are not', () => {
    const calls = { fchmod: 1, fchmodat: 2, fchmodat2: 2, mkdirat: 2, mknodat: 2 }
    for (const arch of ARCHES)
      for (const [name, at] of Object.entries({
        ...calls,
        ...(arch === 'x64' ? { chmod: 1, creat: 1, mkdir: 1, mknod: 1 } : {}),
      })) {
        const call = (mode: number | bigint) => answer(arch, name, at === 1 ? [0, mode] : [0, 0, mode])
        for (const mode of [0o4755, 0o2755, 0o6755, 0o4000, 0o2000]) {
          expect(call(mode)).toBe('EPERM')
          expect(call(TOP | BigInt(mode))).toBe('EPERM')
        }
        for (const mode of [0o755, 0o1777, 0o644, 0]) expect(call(mode)).toBe('allow')
      }
  })

  test('a mode counts in open only when a file is created', () => {
    expect(answer('x64', 'open', [0, 0o102, 0o4755])).toBe('EPERM')
    expect(answer('x64', 'openat', [0, 0, 0o20200002, 0o2755])).toBe('EPERM')
    expect(answer('arm64', 'openat', [0, 0, 0o101, 0o4755])).toBe('EPERM')
    expect(answer('x64', 'openat', [0, 0, 0, 0o4755])).toBe('allow')
    expect(answer('x64', 'openat', [0, 0, 0o200000, 0o6000])).toBe('allow')
    expect(answer('x64', 'openat', [0, 0, 0o101, 0o1644])).toBe('allow')
    expect(answer('x64', 'openat2')).toBe('ENOSYS')
  })

  test('device nodes are refused, pipes and sockets are not', () => {
    for (const type of [0o020000, 0o060000])
      expect(answer('arm64', 'mknodat', [0, 0, type | 0o600])).toBe('EPERM')
    for (const type of [0, 0o010000, 0o100000, 0o140000])
      expect(answer('arm64', 'mknodat', [0, 0, type | 0o600])).toBe('allow')
  })

  test.each<[string, number, number, number, Answer]>([
    ['a Unix stream', 1, 1, 0, 'allow'],
    ['a Unix packet socket that closes on exec', 1, 5 | 0o2000000, 0, 'allow'],
    ['TCP', 2, 1, 0, 'allow'],
    ['TCP over IPv6 by number, not blocking', 10, 1 | 0o4000, 6, 'allow'],
    ['UDP', 2, 2, 17, 'allow'],
    ['the routing socket', 16, 3 | 0o2000000, 0, 'allow'],
    ['MPTCP', 2, 1, 262, 'EPROTONOSUPPORT'],
    ['SCTP', 2, 1, 132, 'EPROTONOSUPPORT'],
    ['UDP-Lite', 2, 2, 136, 'EPROTONOSUPPORT'],
    ['ping', 2, 2, 1, 'EPROTONOSUPPORT'],
    ['ping over IPv6', 10, 2, 58, 'EPROTONOSUPPORT'],
    ['UDP as a stream', 2, 1, 17, 'EPROTONOSUPPORT'],
    ['raw IP', 2, 3, 1, 'EPERM'],
    ['SCTP packets', 2, 5, 132, 'EPERM'],
    ['packets by their old name', 2, 10, 3, 'EPERM'],
    ['netfilter', 16, 3, 12, 'EPROTONOSUPPORT'],
    ['audit', 16, 3, 9, 'EPROTONOSUPPORT'],
    ['packet', 17, 3, 0, 'EAFNOSUPPORT'],
    ['vsock', 40, 1, 0, 'EAFNOSUPPORT'],
    ['kernel crypto', 38, 5, 0, 'EAFNOSUPPORT'],
    ['no family', 0, 1, 0, 'EAFNOSUPPORT'],
  ])('a socket for %s', (_, family, type, protocol, wanted) => {
    for (const arch of ARCHES) {
      expect(answer(arch, 'socket', [family, type, protocol])).toBe(wanted)
      expect(answer(arch, 'socket', [TOP | BigInt(family), TOP | BigInt(type), TOP | BigInt(protocol)])).toBe(
        wanted,
      )
    }
  })

  test('a pair of sockets is a Unix pair', () => {
    expect(answer('x64', 'socketpair', [1, 1, 0])).toBe('allow')
    for (const family of [2, 16, 30, 40])
      expect(answer('x64', 'socketpair', [family, 1, 0])).toBe('EAFNOSUPPORT')
  })

  test('a debugger may trace its children and attach to no other process', () => {
    for (const request of [0, 1, 7, 12, 24, 0x4200])
      expect(answer('x64', 'ptrace', [request, 1])).toBe('allow')
    for (const request of [16, 0x4206]) expect(answer('x64', 'ptrace', [request, 1])).toBe('EPERM')
  })

  test('personality, prctl, seccomp and TCP_ULP keep their harmless part', () => {
    for (const persona of [0, 0x4_0000, 0xffff_ffff])
      expect(answer('x64', 'personality', [persona])).toBe('allow')
    for (const persona of [0x40_0000, 0x44_0000, 8, 0x2_0000, 0x10_0000])
      expect(answer('x64', 'personality', [persona])).toBe('EPERM')
    expect(answer('x64', 'prctl', [35])).toBe('EPERM')
    for (const option of [4, 22, 36, 38]) expect(answer('x64', 'prctl', [option])).toBe('allow')
    expect(answer('x64', 'seccomp', [1, 8])).toBe('EPERM')
    for (const flags of [0, 1, 4]) expect(answer('x64', 'seccomp', [1, flags])).toBe('allow')
    expect(answer('x64', 'setsockopt', [3, 6, 31])).toBe('ENOPROTOOPT')
    expect(answer('x64', 'setsockopt', [3, 6, 1])).toBe('allow')
    expect(answer('x64', 'setsockopt', [3, 1, 31])).toBe('allow')
  })

  test('where only listed programs run, anonymous memory holds none', () => {
    expect(answer('x64', 'memfd_create', [0, 1], 'any')).toBe('allow')
    for (const flags of [0, 1, 8, 9, 0x10])
      expect(answer('x64', 'memfd_create', [0, flags], 'listed')).toBe('ENOSYS')
  })
})
