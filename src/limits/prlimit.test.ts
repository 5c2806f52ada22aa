import { expect, test } from 'bun:test'
import { readOfProcess } from '../base/kernel/kernel-file.ts'
import { setProcessLimit } from './prlimit.ts'

test('a process that is gone has no file, and needs no limit', async () => {
  const child = Bun.spawn(['true'])
  await child.exited
  expect(readOfProcess(child.pid, 'status')).toBeUndefined()
  await setProcessLimit(child.pid, { nproc: 10 })
  // An existing process has its file, and an error is reported.
  expect(readOfProcess(process.pid, 'status')).toContain(`Pid:\t${process.pid}`)
  expect(() => readOfProcess(process.pid, 'fd')).toThrow('EISDIR')
})

test('a limit leaves half of the processes that the user may start; a lower one stays as it is', async () => {
  const child = Bun.spawn(['prlimit', '--nproc=100:100', 'sleep', '60'])
  try {
    const set = async (nproc: number): Promise<string | undefined> => {
      await setProcessLimit(child.pid, { nproc })
      return /^Max processes +(\d+)/m.exec(readOfProcess(child.pid, 'limits') ?? '')?.[1]
    }
    while (readOfProcess(child.pid, 'comm') !== 'sleep\n') await Bun.sleep(5)
    expect(await set(80)).toBe('50')
    expect(await set(20)).toBe('20')
  } finally {
    child.kill()
  }
})
