import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { avoidOwnProcessor } from './cpu-placement.ts'

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

describe('the processes of a start', () => {
  test('avoid one of pen’s processors where it has several; released, they run on all of them', () => {
    const [guard, init] = [sleeper(), sleeper()]
    const before = processorsOf('self')
    const bringBack = avoidOwnProcessor(guard)
    expect(processorsOf(guard) === before).toBe(isAlone)
    bringBack(guard)
    expect(processorsOf(guard)).toBe(before)
    bringBack(init)
    expect(processorsOf(init)).toBe(before)
    expect(processorsOf('self')).toBe(before)
  })
  test('may have ended before or after', async () => {
    const child = Bun.spawn(['true'])
    await child.exited
    avoidOwnProcessor(child.pid)(process.pid)
    avoidOwnProcessor(sleeper())(child.pid)
    expect(processorsOf('self')).not.toBe('')
  })
  test('may be refused by the kernel: the end of a sandbox asks for its init too', () => {
    const NO_SUCH = -5
    expect(() => avoidOwnProcessor(sleeper())(NO_SUCH)).not.toThrow()
  })
})
