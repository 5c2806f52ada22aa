import { describe, expect, test } from 'bun:test'
import type { Command } from './command.ts'
import { PieceQueue, RunningCommand } from './running-command.ts'

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

describe('output that is read as it comes', () => {
  test('holds its writer until it is taken, and comes in order', async () => {
    const queue = new PieceQueue()
    let taken = false
    const put = queue.put('stdout', Buffer.from('a'))?.then(() => {
      taken = true
    })
    await Promise.resolve()
    expect(taken).toBe(false)
    void queue.put('stderr', Buffer.from('b'))
    queue.end()
    const seen: string[] = []
    for await (const { stream, bytes } of queue.read()) seen.push(`${stream} ${text(bytes)}`)
    await put
    expect(seen).toEqual(['stdout a', 'stderr b'])
  })

  test('is let go where nobody reads, and where a reader stops', async () => {
    const unread = new PieceQueue()
    const waiting = unread.put('stdout', Buffer.from('a'))
    unread.letGo()
    await waiting
    expect(unread.put('stdout', Buffer.from('b'))).toBeUndefined()

    const stopped = new PieceQueue()
    void stopped.put('stdout', Buffer.from('a'))
    const second = stopped.put('stdout', Buffer.from('b'))
    for await (const _ of stopped.read()) break
    await second
    expect(stopped.put('stdout', Buffer.from('c'))).toBeUndefined()
  })
})

test('a signal that no keeper passes on is refused, and does not cost the command', () => {
  const sent: string[] = []
  const command = { ended: () => new Promise(() => undefined), sendSignal: (name: string) => sent.push(name) }
  const running = new RunningCommand(command as unknown as Command, new PieceQueue())
  for (const name of ['SIGFOO', 'SIGSEGV', 'toString', ''])
    expect(() => running.signal(name as NodeJS.Signals)).toThrow('is no signal that a command is sent')
  running.signal('SIGTERM')
  expect(sent).toEqual(['SIGTERM'])
})
