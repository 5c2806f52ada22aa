/** Against a directory that looks like a v2 hierarchy: what is written where. What the kernel then does is its own claim. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../test/skip.ts'
import type { Bytes, Millis } from '../base/quantity.ts'
import type { Limits } from '../policy/policy.ts'
import { findV2, openV2, readV2, type V2Parent } from './cgroup-v2.ts'
import { findOwnCgroups } from './own-cgroup.ts'
import { findLimitSupport } from './probe.ts'
import { scopeArguments } from './systemd-scope.ts'

const LIMITS: Limits = {
  cpus: 1.5,
  memory: (64 * 2 ** 20) as Bytes,
  pids: 20,
  wall: 1 as Millis,
  disk: 1 as Bytes,
  output: 1 as Bytes,
  files: 16,
}

let top = ''
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'pen-v2-'))
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

function cgroup(path: string, handedDown: string, controllers = handedDown): void {
  mkdirSync(`${top}${path}`, { recursive: true })
  writeFileSync(`${top}${path}/cgroup.subtree_control`, `${handedDown}\n`)
  writeFileSync(`${top}${path}/cgroup.controllers`, `${controllers}\n`)
  writeFileSync(`${top}${path}/cgroup.procs`, '')
}

const view = (path: string) => ({
  own: `0::${path}\n`,
  mounts: `30 23 0:27 / ${top} rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`,
})
const find = (path: string): V2Parent | undefined => findV2(findOwnCgroups(view(path)))

describe('the parent of a sandbox', () => {
  test('is the nearest cgroup above pen’s own that hands its controllers down', () => {
    cgroup('/user.slice', 'cpu memory pids')
    cgroup('/user.slice/app.slice', 'memory pids')
    cgroup('/user.slice/app.slice/terminal.scope', '')
    expect(find('/user.slice/app.slice/terminal.scope')).toEqual({
      dir: `${top}/user.slice/app.slice`,
      holds: new Set(['memory', 'pids']),
      enable: [],
    })
  })

  test('is none when nothing hands them down', () => {
    cgroup('/user.slice/session.scope', '')
    expect(find('/user.slice/session.scope')).toBeUndefined()
    expect(findLimitSupport(view('/user.slice/session.scope'), 0).mechanism.how).toBe('watchdog')
  })

  test('is the top where they can be switched on', () => {
    cgroup('', 'memory', 'cpu io memory pids')
    expect(find('/')).toMatchObject({ dir: top, enable: ['pids', 'cpu'] })
  })

  test('is never outside what the mount shows', () => {
    expect(find('/../other')).toBeUndefined()
  })

  onlyWhen(process.getuid?.() !== 0)('is never a cgroup of another user', () => {
    cgroup('/app.slice', 'memory pids')
    chmodSync(`${top}/app.slice/cgroup.procs`, 0o444)
    expect(find('/app.slice')).toBeUndefined()
  })
})

describe('a cgroup of version 2', () => {
  // A real one has its files as soon as it is made; here they appear when they are written.
  const open = (): string => {
    cgroup('/app.slice', 'cpu memory pids')
    const parent = find('/app.slice')
    if (parent === undefined) throw new Error('no parent')
    openV2(LIMITS, 'pen-1-2-run', parent).close()
    return `${top}/app.slice/pen-1-2-run`
  }

  test('has its limits before a process joins', () => {
    const dir = open()
    const read = (file: string): string => readFileSync(`${dir}/${file}`, 'utf8')
    expect(read('memory.max')).toBe('67108864')
    expect(read('cpu.max')).toBe('150000 100000')
    expect(read('pids.max')).toBe('23')
  })

  test('reports what was refused', () => {
    const dir = open()
    writeFileSync(`${dir}/memory.events`, 'low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 1\n')
    writeFileSync(`${dir}/pids.events`, 'max 7\n')
    writeFileSync(`${dir}/cpu.stat`, 'usage_usec 5000\nuser_usec 1\nthrottled_usec 9000\n')
    const read = readV2(dir)
    expect(read.counters()).toEqual({ oomKills: 2, refusedForks: 7, throttledMs: 9 })
    expect(read.usage()).toEqual({ cpuMs: 5, memoryBytes: undefined, pids: undefined })
    read.close()
  })
})

test('a scope is asked for with the same bounds', () => {
  const words = scopeArguments(
    { systemdRun: '/usr/bin/systemd-run', runtimeDir: '/run/user/7' },
    LIMITS,
    'pen-1-2-run',
  )
  expect(words.slice(0, 3)).toEqual(['/usr/bin/systemd-run', '--user', '--scope'])
  expect(words).toContain('--property=MemoryMax=67108864')
  expect(words).toContain('--property=TasksMax=23')
  expect(words).toContain('--property=CPUQuota=150%')
  expect(words.at(-1)).toBe('--')
})

describe('pen’s own cgroup', () => {
  test('of version 1 is found per controller, also where two share a hierarchy', () => {
    const own = findOwnCgroups({
      own: '4:memory:/a/b\n3:cpu,cpuacct:/c\n0::/\n',
      mounts:
        '1 0 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n2 0 0:2 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n',
    })
    expect([...own.v1]).toEqual([
      ['memory', '/cg/memory/a/b'],
      ['cpu', '/cg/cpu,cpuacct/c'],
      ['cpuacct', '/cg/cpu,cpuacct/c'],
    ])
  })

  test('in a container is below the part that is mounted', () => {
    const mounts = '1 0 0:1 /docker/x /cg/memory ro - cgroup cgroup rw,memory\n'
    expect(findOwnCgroups({ own: '4:memory:/docker/x/y\n', mounts }).v1.get('memory')).toBe('/cg/memory/y')
    expect(findOwnCgroups({ own: '4:memory:/docker/xy\n', mounts }).v1.get('memory')).toBeUndefined()
  })
})
