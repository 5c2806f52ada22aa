import { describe, expect, test } from 'bun:test'
import type { Running } from '../../backend/backend.ts'
import { GRACE_MS, passSignals, Stopping } from './stopping.ts'

/** A sandbox that only records signals. */
function deaf() {
  const heard: string[] = []
  const running = {
    signal: (name: string) => void heard.push(name),
    kill: () => void heard.push('kill'),
  } as unknown as Running
  return { heard, running }
}

describe('an ending', () => {
  test('asks first, and takes what ignores the question, within two seconds', async () => {
    expect(GRACE_MS).toBeLessThan(1500)
    const { heard, running } = deaf()
    const stopping = new Stopping(running, 20)
    stopping.ask('wall')
    expect(heard).toEqual(['SIGTERM'])
    await Bun.sleep(60)
    expect(heard).toEqual(['SIGTERM', 'kill'])
    expect(stopping.reason).toBe('wall')
  })
  test('that was heard kills nothing', async () => {
    const { heard, running } = deaf()
    const stopping = new Stopping(running, 20)
    stopping.ask('signal', 'SIGHUP')
    stopping.done()
    await Bun.sleep(60)
    expect(heard).toEqual(['SIGHUP'])
  })
  test('keeps its first reason, however often it is asked for', () => {
    const { heard, running } = deaf()
    const stopping = new Stopping(running)
    stopping.ask('signal')
    stopping.ask('wall')
    stopping.done()
    expect(stopping.reason).toBe('signal')
    expect(heard).toEqual(['SIGTERM', 'SIGTERM'])
  })
  test('of a part that fails does not ask, and keeps the first failure', () => {
    const { heard, running } = deaf()
    const stopping = new Stopping(running)
    stopping.failed(new Error('first'))
    stopping.failed('second')
    expect(heard).toEqual(['kill', 'kill'])
    expect(stopping.failure?.message).toBe('first')
  })
})

describe('signals to pen', () => {
  test('reach the command; terminating signals begin the end; afterwards the handlers are removed', () => {
    const { heard, running } = deaf()
    const stopping = new Stopping(running)
    const before = ['SIGINT', 'SIGTERM', 'SIGUSR1'].map(name => process.listenerCount(name))
    const forget = passSignals(running, stopping)
    process.emit('SIGINT', 'SIGINT')
    process.emit('SIGUSR1', 'SIGUSR1')
    expect(stopping.reason).toBeUndefined()
    process.emit('SIGTERM', 'SIGTERM')
    expect(stopping.reason).toBe('signal')
    stopping.done()
    forget()
    expect(heard).toEqual(['SIGINT', 'SIGUSR1', 'SIGTERM'])
    expect(['SIGINT', 'SIGTERM', 'SIGUSR1'].map(name => process.listenerCount(name))).toEqual(before)
  })
})
