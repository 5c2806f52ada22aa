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
