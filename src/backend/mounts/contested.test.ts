import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bwrapWorks } from '../../../test/bubblewrap.ts'
import { skipUnless } from '../../../test/skip.ts'
import { childrenOf } from '../../base/kernel/processes.ts'
import type { Step } from '../../plan/plan.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { contestedSteps, requireHeld } from './contested.ts'

const project = realpathSync(mkdtempSync(join(tmpdir(), 'pen-contested-')))
beforeAll(() => {
  mkdirSync(`${project}/deep/er`, { recursive: true })
  for (const name of ['.env', '.npmrc', 'deep/er/key']) writeFileSync(`${project}/${name}`, '')
})
afterAll(() => rmSync(project, { recursive: true }))

const bind = (name: string, mode: 'ro' | 'rw', from = project + name): Step =>
  ({ op: 'bind', from, at: project + name, mode, why: 'test' }) as unknown as Step
const cover = (name: string, passable?: true): Step =>
  ({ op: 'cover', at: project + name, kind: 'file', why: 'test', ...(passable && { passable }) }) as Step

const STEPS = [
  bind('', 'rw'),
  cover('/.env'),
  bind('/.npmrc', 'ro'),
  bind('/deep', 'rw'),
  cover('/deep/er/key'),
]

const PLAN = { layer: undefined, workspace: '/' as HostPath }

function lateBeside(pid: number, steps: readonly Step[] = STEPS): string[] {
  return [...contestedSteps(steps, [pid], PLAN).values()].map(
    ({ how, path }) => `${how} ${path.slice(project.length)}`,
  )
}

test('without another sandbox, and beside one that is gone, every step is bubblewrap’s', () => {
  expect(contestedSteps(STEPS, [], PLAN).size).toBe(0)
  expect(lateBeside(2 ** 30)).toEqual([])
})

test('beside a process that can replace every name, pen makes the mounts in the project, in order', () => {
  expect(lateBeside(process.pid)).toEqual([
    'cover /.env',
    'protect /.npmrc',
    'open /deep',
    'cover /deep/er/key',
  ])
})

test('what pen cannot mount by descriptor is refused beside such a process, and the error names the path', () => {
  for (const step of [bind('/deep', 'rw', '/elsewhere'), cover('/deep', true)])
    expect(() => lateBeside(process.pid, [bind('', 'rw'), step])).toThrow(
      expect.objectContaining({ at: `${project}/deep`, code: 'PATH_REFUSED' }),
    )
})

/** A sandbox with the project and these mounts. Its first process is a child of bubblewrap. */
async function beside<T>(args: readonly string[], look: (pid: number) => T): Promise<T> {
  const words = ['--dev-bind', '/', '/', '--bind', project, project, ...args, '--unshare-pid']
  const sandbox = Bun.spawn(['bwrap', ...words, 'sh', '-c', 'echo up; sleep 20'], { stdout: 'pipe' })
  try {
    await sandbox.stdout.getReader().read()
    return look(childrenOf(sandbox.pid)[0] ?? 0)
  } finally {
    sandbox.kill('SIGKILL')
    await sandbox.exited
  }
}

const at = (name: string): string[] => [project + name, project + name]

skipUnless(bwrapWorks(), 'bubblewrap is missing')(
  'a name that is a mount point in the other sandbox, as is each directory above it, is bubblewrap’s',
  async () => {
    const held = ['--ro-bind', ...at('/.env'), '--bind', ...at('/deep'), '--bind', ...at('/deep/er')]
    expect(await beside([...held, '--ro-bind', ...at('/deep/er/key')], lateBeside)).toEqual([
      'protect /.npmrc',
    ])
    // It could rename `er`, whatever is mounted below it.
    expect(await beside(['--bind', ...at('/deep'), '--ro-bind', ...at('/deep/er/key')], lateBeside)).toEqual([
      'cover /.env',
      'protect /.npmrc',
      'cover /deep/er/key',
    ])
    expect(await beside(['--ro-bind', project, project], lateBeside)).toEqual([])
    expect(await beside(['--tmpfs', project], lateBeside)).toEqual([])
  },
)

test('a mount that was not made stops the start', () => {
  const orders = [...contestedSteps(STEPS, [process.pid], PLAN).values()]
  expect(() => requireHeld(orders, ['held', 'held', 'held', 'held'])).not.toThrow()
  expect(() => requireHeld(orders, ['held', 'changed', 'held', 'held'])).toThrow('changed while pen checked')
  expect(() => requireHeld(orders, ['held', { failed: 'why' }])).toThrow('cannot mount in the sandbox: why')
  expect(() => requireHeld(orders, ['held'])).toThrow('changed while pen checked')
})
