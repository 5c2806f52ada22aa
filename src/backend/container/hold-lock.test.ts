import { expect, test } from 'bun:test'
import { closeSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../test/until.ts'
import { UndoStack } from '../../base/undo.ts'
import { takeLock, tryLock } from '../../config/lock.ts'
import { holdLock } from './hold-lock.ts'

test('the lock of a layer is held until the container has ended, also when pen is gone', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-lock-'))
  const path = join(dir, 'lock')
  const isFree = (): boolean => {
    const taken = tryLock(path)
    taken?.release()
    return taken !== undefined
  }
  const init = Bun.spawn(['sleep', '30'])
  const undo = new UndoStack()
  const lock = await takeLock(path, { timeoutMs: 1000, busy: '' })
  holdLock(lock.fd, init.pid, undo)
  // As at the end of pen, which closes its descriptors.
  closeSync(lock.fd)
  await undo.unwind()
  await Bun.sleep(100)
  expect(isFree()).toBe(false)
  init.kill('SIGKILL')
  await until(isFree)
  rmSync(dir, { recursive: true })
})
