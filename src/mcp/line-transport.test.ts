import { describe, expect, test } from 'bun:test'
import { PassThrough } from 'node:stream'
import { LineTransport } from './line-transport.ts'

/** Sends input. Returns what reached the server, and what the transport answered itself. */
async function exchange(input: string | Uint8Array, longest = 1000) {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const transport = new LineTransport(stdin, stdout, longest)
  const passed: Record<string, unknown>[] = []
  transport.onmessage = message => passed.push(message)
  await transport.start()
  stdin.end(input)
  await new Promise(done => stdin.once('end', done))
  await new Promise(done => setImmediate(done))
  const text = String(stdout.read() ?? '')
  const answers = text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
  return { passed, answers, transport }
}

const ping = (id: unknown): string => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })

test('a request is passed on, in pieces, with CRLF and between empty lines', async () => {
  const { passed, answers } = await exchange(`\n${ping(1)}\r\n \n${ping('a')}\n`)
  expect(passed.map(({ id }) => id)).toEqual([1, 'a'])
  expect(answers).toEqual([])
})

describe('every request with an id is answered', () => {
  test.each([
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"resources/list"}', 1, -32601],
    [
      'a method with the name of an Object property',
      '{"jsonrpc":"2.0","id":1,"method":"constructor"}',
      1,
      -32601,
    ],
    [
      'params that are not an object',
      '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":5}',
      'x',
      -32602,
    ],
    ['a call without a tool', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', 1, -32602],
    [
      'arguments that are a list',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":[]}}',
      1,
      -32602,
    ],
    [
      'an initialize with a wrong version',
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}',
      1,
      -32602,
    ],
    ['no method', '{"jsonrpc":"2.0","id":1}', 1, -32600],
    ['no version of JSON-RPC', '{"id":1,"method":"ping"}', 1, -32600],
    ['an id that is a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, -32600],
    ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', null, -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', null, -32600],
    ['nothing in it', '{}', null, -32600],
    ['a number', '5', null, -32600],
    ['an empty batch', '[]', null, -32600],
    ['broken JSON with an id', '{"jsonrpc":"2.0","id":7,"method":', 7, -32700],
    ['not JSON', 'hello', null, -32700],
    [
      'too long, with its id first',
      `{"jsonrpc":"2.0","id":7,"params":{"x":"${'y'.repeat(2000)}"},"method":"ping"}`,
      7,
      -32600,
    ],
    [
      'too long, with its id last',
      `{"params":{"id":3,"x":"${'y'.repeat(2000)}"},"method":"ping","id":8}`,
      8,
      -32600,
    ],
  ])('%s', async (_, line, id, code) => {
    const { answers, passed } = await exchange(`${line}\n${ping('next')}\n`)
    expect(answers).toMatchObject([{ jsonrpc: '2.0', id, error: { code } }])
    // A sentence, not the output of a validator.
    expect(answers[0].error.message).not.toMatch(/[{}\n]|invalid_type/)
    expect(passed.map(message => message['id'])).toEqual(['next'])
  })

  test('bytes that are not UTF-8 are an error, not a changed message', async () => {
    const bytes = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":3,"x":"'), Buffer.from([0xff, 0x0a])])
    expect((await exchange(bytes)).answers).toMatchObject([{ id: 3, error: { code: -32700 } }])
  })

  test('in a batch each on its own', async () => {
    const { passed, answers } = await exchange(`[${ping(1)},{"id":2},${ping(3)}]\n`)
    expect(passed.map(({ id }) => id)).toEqual([1, 3])
    expect(answers).toMatchObject([{ id: 2 }])
  })

  test('a second request with an unanswered id is refused, and the first continues', async () => {
    const { passed, answers, transport } = await exchange(`${ping(1)}\n${ping(1)}\n`)
    expect(passed).toHaveLength(1)
    expect(answers).toMatchObject([{ id: 1, error: { code: -32600 } }])
    let idle = false
    void transport.idle().then(() => {
      idle = true
    })
    await Promise.resolve()
    expect(idle).toBe(false)
    await transport.send({ jsonrpc: '2.0', id: 1, result: {} })
    await transport.idle()
  })
})

test('notifications and answers get no answer, and a cancelled request is not waited for', async () => {
  const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
  const { passed, answers, transport } = await exchange(
    `{"jsonrpc":"2.0","method":5}\n{"jsonrpc":"2.0","method":"x","params":5}\n{"result":1}\n${ping(1)}\n${cancel}\n`,
  )
  expect(answers).toMatchObject([{ id: null }])
  expect(passed.map(({ method }) => method)).toEqual(['ping', 'notifications/cancelled'])
  await transport.idle()
})

test('a request for a task is ignored, because pen declares no tasks', async () => {
  const { passed } = await exchange(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","task":{"ttl":1}}}\n',
  )
  expect(passed).toEqual([{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run' } }])
})
