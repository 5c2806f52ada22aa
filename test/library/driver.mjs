// A program that uses the library, on Node or on Bun: one order per line on stdin, one answer per line on
// stdout. Plain JavaScript, because Node 20 runs nothing else.
import { createInterface } from 'node:readline'

const { Sandbox, SandboxError } = await import(process.argv[2])
let box
let forwarded
const events = []
const spawned = []

const orders = {
  start: async options => {
    box = await Sandbox.start(options)
    for (const name of ['denial', 'limit', 'ask', 'end']) box.on(name, value => events.push({ name, value }))
    const { id, project, backend, isolation, joined, notes } = box
    return { id, project, backend, isolation, joined, notes }
  },
  exec: async ({ command, options, abortAfter }) => {
    const signal = abortAfter === undefined ? undefined : AbortSignal.timeout(abortAfter)
    return await box.exec(command, { ...options, signal })
  },
  listen: async ({ command, how }) =>
    await box.exec(command, {
      onOutput: () => {
        if (how === 'throws') throw new Error('it throws')
        return Promise.reject(new Error('it rejects'))
      },
    }),
  many: async ({ command, count }) =>
    await Promise.all(Array.from({ length: count }, () => box.exec(command))),
  stream: async ({ command, input }) => {
    const running = await box.spawn(command)
    const pieces = []
    for await (const { stream, bytes } of running) {
      pieces.push([stream, new TextDecoder().decode(bytes)])
      const next = input.shift()
      if (next !== undefined) await running.write(next)
      else running.endInput()
    }
    return { pieces, result: await running.result() }
  },
  unread: async ({ command, options }) => {
    const running = await box.spawn(command, options)
    running.endInput()
    return await running.result()
  },
  late: async ({ command }) => {
    const running = await box.spawn(command)
    const { stdout } = await running.result()
    let read = ''
    for await (const { bytes } of running) read += new TextDecoder().decode(bytes)
    return { stdout, read }
  },
  child: async ({ command, input, kill }) => {
    const child = await box.spawn(command)
    const printed = []
    const closed = new Promise(resolve => child.on('close', resolve))
    for (const name of ['exit', 'close']) child.on(name, (...values) => printed.push([name, ...values]))
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'])
      child[name].setEncoding('utf8').on('data', text => {
        said[name] += text
      })
    child.stdin.end(input)
    if (kill !== undefined) setTimeout(() => child.kill(kill), 300)
    await closed
    return { ...said, events: printed }
  },
  slow: async ({ command }) => {
    const { stdout } = await box.spawn(command)
    let size = 0
    for await (const bytes of stdout) {
      if (size === 0) await new Promise(resolve => setTimeout(resolve, 200))
      size += bytes.length
    }
    return size
  },
  pair: async ({ commands }) => await Promise.all(commands.map(command => box.exec(command))),
  throw: async () => {
    box.on('error', error => events.push({ name: 'error', value: { message: error.message } }))
    box.on('denial', () => {
      throw new Error('a mistake in a listener')
    })
  },
  listenTo: async ({ event }) => void box.on(event, () => undefined),
  leave: async ({ command }) => {
    spawned.push(await box.spawn(command))
    return null
  },
  forward: async ({ port, options }) => {
    forwarded = await box.forward(port, options)
    return { address: forwarded.address, port: forwarded.port }
  },
  unforward: async () => void (await forwarded.close()),
  read: async ({ path, options }) => await box.files.readText(path, options),
  write: async ({ path, content, options }) => void (await box.files.write(path, content, options)),
  delete: async ({ path, options }) => void (await box.files.delete(path, options)),
  list: async ({ path }) => await box.files.list(path),
  search: async ({ pattern, options }) => await box.files.search(pattern, options),
  allow: async ({ target, options }) => void (await box.allow(target, options)),
  grant: async ({ path, options }) => void (await box.grant(path, options)),
  revoke: async ({ path }) => void (await box.revoke(path)),
  request: async ({ wanted, options }) => await box.requestPermission(wanted, options),
  events: async () => events.splice(0),
  stop: async () => void (await box.stop()),
  dispose: async () => void (await box[Symbol.asyncDispose]()),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...order } = JSON.parse(line)
  try {
    console.log(JSON.stringify({ ok: true, value: (await orders[op](order)) ?? null }))
  } catch (error) {
    const { name, code, what, hint, retry, permission, message } = error
    const isOurs = error instanceof SandboxError
    console.log(
      JSON.stringify({ ok: false, error: { name, code, what, hint, retry, permission, message, isOurs } }),
    )
  }
}
