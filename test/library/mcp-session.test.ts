/**
 * The session of `pen mcp` besides its tools: progress, roots, sandboxes that end, and messages that are not
 * calls.
 */
import { expect } from 'bun:test'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_MESSAGE } from '../../src/mcp/line-transport.ts'
import { PEN } from '../conformance/launcher.ts'
import { withClient } from './mcp-client.ts'
import { onGrounds, type Place, PROCESS } from './place.ts'

const OFFLINE = { network: { offline: true } }
/** One kind of user is enough where user rights do not matter. */
const ONE = PROCESS.slice(0, 1)

onGrounds(ONE, 'a client learns of each tool what it returns and what it may change', async place => {
  place.configure(OFFLINE)
  await withClient(place, {}, async ({ client }) => {
    const { tools } = await client.listTools()
    const hints = tools.map(({ name, annotations = {}, outputSchema }) => [
      name,
      annotations.readOnlyHint,
      annotations.destructiveHint,
      annotations.idempotentHint,
      annotations.openWorldHint,
      Object.keys(outputSchema?.properties ?? {}).filter(key => key !== 'error').length > 0,
    ])
    expect(hints).toEqual([
      ['run', false, true, false, true, true],
      ['read_file', true, false, true, false, true],
      ['write_file', false, true, true, false, true],
      ['delete_file', false, true, true, false, true],
      ['list_files', true, false, true, false, true],
      ['search_files', true, false, true, false, true],
      ['request_permission', true, false, true, false, true],
    ])
  })
})

onGrounds(
  ONE,
  'a client that asks for progress gets it for a long call, and only while it runs',
  async place => {
    place.configure(OFFLINE)
    await withClient(place, {}, async client => {
      const heard: { progress: number; message?: string | undefined }[] = []
      const onprogress = (one: (typeof heard)[number]): void => void heard.push(one)
      await client.call('run', { command: 'echo word; sleep 4.5' }, { onprogress })
      const during = heard.length
      expect(during).toBeGreaterThanOrEqual(2)
      const seconds = heard.map(({ progress }) => progress)
      expect(seconds).toEqual([...new Set(seconds)].sort((a, b) => a - b))
      expect(heard.at(-1)?.message).toContain('5 bytes of output')
      await client.call('run', { command: 'sleep 2.5' })
      expect(heard).toHaveLength(during)
    })
  },
)

onGrounds(
  ONE,
  'a sandbox that ends during a call is reported with the output so far, and started again',
  async place => {
    place.configure(OFFLINE)
    await withClient(place, {}, async client => {
      const call = client.call('run', { command: 'echo partly; sleep 60' })
      await client.call('run', { command: 'true' })
      const supervisor = readFileSync(join(place.stateDir, 'supervisor.lock'), 'utf8').split(' ')[0]
      process.kill(Number(supervisor), 'SIGKILL')
      const ended = await call
      expect(ended).toMatchObject({
        failed: true,
        facts: {
          error: { code: 'ENDED', retry: true, hint: expect.stringContaining('use the tool again') },
          stdout: 'partly\n',
        },
      })
      expect(ended.texts[0]).toContain('ENDED')
      expect(ended.texts[1]).toBe('stdout:\npartly\n')
      for (const late = performance.now() + 10_000; ; ) {
        const again = await client.call('run', { command: 'echo again' })
        if (again.facts['stdout'] === 'again\n') break
        if (performance.now() > late) throw new Error(again.texts.join('\n'))
      }
    })
  },
)

onGrounds(
  ONE,
  'a sandbox that the user stops during a call is reported as stopped, not as a signal',
  async place => {
    place.configure(OFFLINE)
    await withClient(place, {}, async client => {
      const call = client.call('run', { command: 'echo partly; sleep 60' })
      await client.call('run', { command: 'true' })
      expect(place.pen('stop')).toMatchObject({ code: 0 })
      expect(await call).toMatchObject({
        failed: true,
        facts: {
          error: { code: 'ENDED', what: 'the sandbox has ended: it was stopped' },
          stdout: 'partly\n',
        },
      })
      expect((await client.call('run', { command: 'kill -TERM $$' })).facts).toMatchObject({ exitCode: 143 })
    })
  },
)

onGrounds(ONE, 'a limit that ends a command is reported with the output before it', async place => {
  place.configure({ ...OFFLINE, limits: { wall: '3s' } })
  await withClient(place, {}, async client => {
    const over = await client.call('run', { command: 'echo partly; sleep 60' })
    expect(over.facts).toMatchObject({ limit: { limit: 'wall' }, stdout: 'partly\n' })
    expect(over.texts[0]).toContain('limit reached: wall')
  })
})

onGrounds(
  ONE,
  'a client’s root chooses the project inside the directory where pen was started',
  async place => {
    const [app, lib] = [join(place.project, 'app'), join(place.project, 'lib')]
    for (const path of [app, lib]) mkdirSync(path)
    place.file('secret.txt', 'outside of the root')
    const flags = ['--backend', 'process', '--offline']
    let root = app
    await withClient(place, { flags, cwd: place.project, roots: () => [root] }, async client => {
      const where = async () => (await client.call('run', { command: 'pwd' })).facts['stdout']
      expect(await where()).toBe(`${app}\n`)
      expect(await client.call('read_file', { path: '../secret.txt' })).toMatchObject({
        facts: { error: { code: 'DENIED' } },
      })
      root = lib
      await client.client.sendRootsListChanged()
      expect(await where()).toBe(`${lib}\n`)
      root = place.home
      await client.client.sendRootsListChanged()
      expect(await where()).toBe(`${place.project}\n`)
      root = '/usr'
      await client.client.sendRootsListChanged()
      expect(await client.call('run', { command: 'pwd' })).toMatchObject({
        failed: true,
        facts: { error: { code: 'USAGE', hint: expect.stringContaining('pen mcp --project /usr') } },
      })
    })
  },
)

onGrounds(ONE, 'a root never leads out of the project that the user named', async place => {
  place.configure(OFFLINE)
  mkdirSync(join(place.project, 'part'))
  for (const root of ['/usr', place.home, join(place.project, 'part')])
    await withClient(place, { roots: () => [root] }, async client => {
      // It has a config: its policy covers every part of it.
      expect((await client.call('run', { command: 'pwd' })).facts['stdout']).toBe(`${place.project}\n`)
    })
})

/** Sends everything at once, then ends the input. Returns the answers by id. */
async function pipe(
  place: Place,
  ...lines: readonly string[]
): Promise<Map<unknown, Record<string, unknown>>> {
  const child = Bun.spawn(place.argv(PEN, 'mcp', '--project', place.project), {
    cwd: place.root,
    env: place.env,
    stdin: new Blob([`${lines.join('\n')}\n`]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  const answers = text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
  return new Map(answers.map(answer => [answer.id, answer]))
}

const request = (id: number, method: string, params: object = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

const HELLO = request(0, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'pipe', version: '1' },
})

onGrounds(ONE, 'requests before the input ends are answered, also those that take too long', async place => {
  place.configure(OFFLINE)
  const answers = await pipe(
    place,
    HELLO,
    request(1, 'tools/list'),
    request(2, 'tools/call', { name: 'run', arguments: { command: 'sleep 60' } }),
    request(3, 'no/such'),
  )
  expect([...answers.keys()].sort()).toEqual([0, 1, 2, 3])
  expect(answers.get(2)).toMatchObject({
    result: { isError: true, structuredContent: { error: { code: 'ENDED' } } },
  })
  expect(answers.get(3)).toMatchObject({ error: { code: -32601 } })
  expect(place.isRunning()).toBe(false)
})

onGrounds(ONE, 'a message that is too long is answered, and the session goes on', async place => {
  place.configure(OFFLINE)
  const answers = await pipe(
    place,
    HELLO,
    request(1, 'tools/call', { name: 'write_file', arguments: { content: 'x'.repeat(MAX_MESSAGE) } }),
    request(2, 'tools/call', {
      name: 'write_file',
      arguments: { path: 'x', content: 'x'.repeat(5 * 2 ** 20) },
    }),
    request(3, 'ping'),
  )
  expect(answers.get(1)).toMatchObject({ error: { message: expect.stringContaining('in parts') } })
  expect(answers.get(2)).toMatchObject({ result: { structuredContent: { error: { code: 'LIMIT' } } } })
  expect(answers.get(3)).toMatchObject({ result: {} })
})
