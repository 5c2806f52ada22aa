import { expect, test } from 'bun:test'
import { closeSync, readSync, writeSync } from 'node:fs'
import { socketPair } from '../../base/kernel/socket.ts'
import { Monitor } from './monitor.ts'

function pair(): { monitor: Monitor; qemu: number; said: () => string } {
  const [ours, qemu] = socketPair()
  const said = (): string => {
    const bytes = Buffer.alloc(4096)
    return bytes.subarray(0, readSync(qemu, bytes)).toString()
  }
  return { monitor: new Monitor(ours), qemu, said }
}

test('a command is one line, and its answer is the next one that is no event', async () => {
  const { monitor, qemu, said } = pair()
  const resumed = monitor.event('RESUME')
  const answer = monitor.command('query-status', { a: 1 })
  expect(said()).toBe('{"execute":"query-status","arguments":{"a":1}}\n')
  writeSync(qemu, '{"QMP":{}}\n{"event":"RESUME"}\n{"event":"STOP"}\n{"return":{"status"')
  await resumed
  writeSync(qemu, ':"running"}}\n')
  expect(await answer).toEqual({ status: 'running' })
  monitor.close()
  closeSync(qemu)
})

test('a refusal rejects one command, and the next one is answered', async () => {
  const { monitor, qemu } = pair()
  const first = monitor.command('one')
  const second = monitor.command('two')
  writeSync(qemu, '{"error":{"desc":"no"}}\r\n{"return":{}}\r\n')
  expect(await first.catch(String)).toBe('Error: QEMU refuses: no')
  expect(await second).toEqual({})
  monitor.close()
  closeSync(qemu)
})

for (const [what, bytes] of [
  ['that is no JSON', 'hello\n'],
  ['that is null', 'null\n'],
  ['without an end', 'x'.repeat(70_000)],
] as const)
  test(`an answer ${what} ends the connection, and every wait`, async () => {
    const { monitor, qemu } = pair()
    const answer = monitor.command('one')
    const event = monitor.event('RESUME')
    writeSync(qemu, bytes)
    expect([await answer.catch(String), await event.catch(String)]).toEqual([ENDED, ENDED])
    expect(await monitor.command('two').catch(String)).toBe(ENDED)
    closeSync(qemu)
  })

const ENDED = 'Error: QEMU has ended'
