import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { keepApart } from './cpu-placement.ts'

const processorsOf = (pid: number | 'self'): string =>
  /^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''
const isAlone = !/[-,]/.test(processorsOf('self'))

const sleepers: Bun.Subprocess[] = []
function sleeper(): number {
  const child = Bun.spawn(['sleep', '30'])
  sleepers.push(child)
  return child.pid
}
afterEach(async () => {
  for (const child of sleepers.splice(0)) {
    child.kill('SIGKILL')
    await child.exited
  }
})

describe('what a start brings forth', () => {
  test('keeps off one of pen’s processors, where it has several, and what is brought back runs on them all', () => {
    const [guard, init] = [sleeper(), sleeper()]
    const before = processorsOf('self')
    const bringBack = keepApart(guard)
    expect(processorsOf(guard) === before).toBe(isAlone)
    bringBack(guard)
    expect(processorsOf(guard)).toBe(before)
    bringBack(init)
    expect(processorsOf(init)).toBe(before)
    expect(processorsOf('self')).toBe(before)
  })
  test('is left alone where it is gone already, before or after', async () => {
    const child = Bun.spawn(['true'])
    await child.exited
    keepApart(child.pid)(process.pid)
    keepApart(sleeper())(child.pid)
    expect(processorsOf('self')).not.toBe('')
  })
  test('is no reason to fail where the kernel moves it no more: whoever ends a sandbox asks for its init, too', () => {
    const NO_SUCH = -5
    expect(() => keepApart(sleeper())(NO_SUCH)).not.toThrow()
  })
})
