import { expect, test } from 'bun:test'
import type { Command } from './command.ts'
import { RunningCommand } from './running-command.ts'

type Put = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => Promise<void> | undefined

const END = { exitCode: 0, timedOut: false, limit: null, denials: [], moreDenials: 0 }

/** A command whose output and end the test controls. */
async function begin() {
  let put: Put = () => undefined
  let end: (failed?: Error) => void = () => undefined
  const sent: string[] = []
  const ended = new Promise((resolve, reject) => {
    end = failed => (failed === undefined ? resolve(END) : reject(failed))
  })
  const command = {
    exitStatus: { code: 0, signal: null },
    ended: () => ended,
    execution: {
      signal: (name: string) => sent.push(name),
      kill: () => sent.push('end'),
      write: async (bytes: Uint8Array) => void sent.push(new TextDecoder().decode(bytes)),
      endInput: () => sent.push('eof'),
    },
  }
  const running = await RunningCommand.begin(1000, async output => {
    put = output
    return command as unknown as Command
  })
  return {
    running,
    sent,
    end,
    put: (stream: 'stdout' | 'stderr', text: string) => put(stream, Buffer.from(text)),
  }
}

async function pieces(running: RunningCommand): Promise<string> {
  let text = ''
  for await (const { bytes } of running) text += new TextDecoder().decode(bytes)
  return text
}

test('the result has the output, whether it was read before, meanwhile, later or never', async () => {
  for (const order of ['before', 'meanwhile', 'never', 'after']) {
    const { running, put, end } = await begin()
    const read = order === 'before' ? pieces(running) : undefined
    const result = order === 'before' ? undefined : running.result()
    const reading = order === 'meanwhile' ? pieces(running) : read
    await Promise.all([put('stdout', 'a'), put('stderr', 'b')])
    await put('stdout', 'c')
    end()
    const output = await (result ?? running.result())
    expect({ order, ...output }).toMatchObject({ order, stdout: 'ac', stderr: 'b', truncated: false })
    if (order !== 'never') expect(await (reading ?? pieces(running))).toBe('abc')
  }
})

test('its streams and events are those of a child process', async () => {
  const { running, sent, put, end } = await begin()
  const events: unknown[] = []
  for (const name of ['exit', 'close'] as const)
    running.on(name, (...values) => events.push([name, ...values]))
  const out = running.stdout.setEncoding('utf8').toArray()
  const err = running.stderr.setEncoding('utf8').toArray()
  running.stdin.write('typed')
  running.stdin.end()
  await put('stdout', 'a')
  await put('stderr', 'b')
  expect(running.kill('SIGINT')).toBe(true)
  end()
  expect([(await out).join(''), (await err).join('')]).toEqual(['a', 'b'])
  await Bun.sleep(0)
  expect(events).toEqual([
    ['exit', 0, null],
    ['close', 0, null],
  ])
  expect(sent).toEqual(['typed', 'SIGINT', 'eof'].sort((a, b) => sent.indexOf(a) - sent.indexOf(b)))
  expect(running.kill()).toBe(false)
})

test('an unread stream pauses the command, and a closed one does not', async () => {
  const { running, put } = await begin()
  const { stdout } = running
  const large = 'x'.repeat(2 ** 20)
  let passed = false
  const held = put('stdout', large)?.then(() => {
    passed = true
  })
  await Bun.sleep(5)
  expect(passed).toBe(false)
  stdout.destroy()
  await held
  expect(put('stdout', large)).toBeUndefined()
})

test('a sandbox that ends first emits error to listeners, and never an uncaught exception', async () => {
  const { running, end } = await begin()
  const failed = new Error('ended')
  end(failed)
  await expect(running.result()).rejects.toBe(failed)
  const heard = await begin()
  const errors: unknown[] = []
  heard.running.on('error', error => errors.push(error))
  heard.end(failed)
  await Bun.sleep(0)
  expect(errors).toEqual([failed])
})

test('an unknown signal is refused, and the command continues', async () => {
  const { running, sent } = await begin()
  for (const name of ['SIGFOO', 'SIGSEGV', 'toString', '', undefined])
    expect(() => running.signal(name as NodeJS.Signals)).toThrow('is not a signal that pen forwards')
  running.signal('SIGTERM')
  expect(sent).toEqual(['SIGTERM'])
})
