import { expect, test } from 'bun:test'
import { endBelow, lookBelow } from './end-processes.ts'

const sleeper = () => Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'ignore', 'ignore'] })

test('a process that a look missed, because its parent died, is found by the next look', async () => {
  const child = sleeper()
  const looks = [
    () => [{ pid: 1, isDead: true }],
    () => [
      { pid: 1, isDead: true },
      { pid: child.pid, isDead: false },
    ],
  ]
  const left = await endBelow(process.pid, new Set(), () => looks.shift()?.() ?? [])
  await child.exited
  expect([left, child.signalCode]).toEqual([0, 'SIGKILL'])
})

test('an empty look counts only when the next one is empty too', async () => {
  const child = sleeper()
  const looks = [[], [{ pid: child.pid, isDead: false }]]
  expect(await endBelow(process.pid, new Set(), () => looks.shift() ?? [])).toBe(0)
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
})

test('all descendants end, and excepted ones do not', async () => {
  const [child, other] = [sleeper(), sleeper()]
  const before = new Set(lookBelow(process.pid).map(({ pid }) => pid))
  before.delete(child.pid)
  expect(await endBelow(process.pid, before)).toBe(0)
  await child.exited
  expect([child.signalCode, other.exitCode]).toEqual(['SIGKILL', null])
  other.kill()
})
