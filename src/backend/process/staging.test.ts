import { expect } from 'bun:test'
import { readlinkSync } from 'node:fs'
import { onlyWhen } from '../../../test/skip.ts'
import { UndoStack } from '../../base/undo.ts'
import { Staging } from './staging.ts'

const asRoot = onlyWhen(process.getuid?.() === 0)

asRoot('pen returns to its namespace also when a thread was started in between', async () => {
  const view = () => readlinkSync('/proc/thread-self/ns/mnt')
  const before = view()
  const staging = new Staging({ uid: 0x70000001, gid: 0x70000001 }, new UndoStack())
  expect(view()).not.toBe(before)
  const worker = new Worker('data:text/javascript,setInterval(() => {}, 1000)')
  staging.leave()
  expect(view()).toBe(before)
  worker.terminate()
})
