/**
 * `pen mcp` with the SDK's own client: what a model gets, from the list of tools to a permission that was
 * given.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { quote } from '../conformance/box.ts'
import { until } from '../until.ts'
import { withClient } from './mcp-client.ts'
import { onGrounds, PROCESS } from './place.ts'
import { fetchScript, Recorder } from './recorder.ts'

const OFFLINE = { network: { offline: true } }

onGrounds(
  PROCESS,
  'a client lists tools, runs a command, and sees it time out with its output',
  async place => {
    place.configure(OFFLINE)
    await withClient(place, {}, async client => {
      const { tools } = await client.client.listTools()
      expect(tools.map(({ name }) => name)).toEqual([
        'run',
        'read_file',
        'write_file',
        'delete_file',
        'list_files',
        'search_files',
        'request_permission',
      ])
      expect(tools.every(({ inputSchema }) => inputSchema['additionalProperties'] === false)).toBe(true)
      expect(client.client.getInstructions()).toContain('request_permission')
      // Nothing runs until a tool is used.
      expect(place.isRunning()).toBe(false)
      const ran = await client.call('run', { command: 'pwd; echo oops >&2; exit 3' })
      expect(ran.texts).toEqual(['exit code 3', `stdout:\n${place.project}\n`, 'stderr:\noops\n'])
      const said = { stdout: `${place.project}\n`, stderr: 'oops\n' }
      expect(ran.facts).toEqual({
        ...{ exitCode: 3, timedOut: false, truncated: false, limit: null, denials: [] },
        ...said,
      })
      expect(ran.failed).toBe(false)
      expect(place.isRunning()).toBe(true)
      const late = await client.call('run', { command: 'echo partly; sleep 60', timeout_seconds: 0.3 })
      expect(late.texts[1]).toBe('stdout:\npartly\n')
      expect(late).toMatchObject({ facts: { exitCode: 124, timedOut: true, stdout: 'partly\n' } })
      const long = await client.call('run', { command: 'head -c 1000000 /dev/zero | tr "\\0" x', stdin: '' })
      expect(long.facts).toMatchObject({ truncated: true })
      expect(long.texts.join('').length).toBeLessThan(40_000)
      expect(JSON.stringify(long.facts).length).toBeLessThan(40_000)
      const odd = await client.call('run', { command: 'printf "a\\0b"; printf "\\377" >&2' })
      expect(odd.facts).toMatchObject({
        binary: ['stdout', 'stderr'],
        stdout: 'a\ufffdb',
        stderr: '\ufffd',
      })
      expect(odd.texts[0]).toContain('not text: stdout and stderr')
      const fed = await client.call('run', { command: 'cat', stdin: 'typed', cwd: '.' })
      expect(fed.texts[1]).toBe('stdout:\ntyped')
    })
    await until(() => !place.isRunning())
  },
)

onGrounds(
  PROCESS,
  'a client reads, writes, lists and searches files, and gets the reason of a refusal',
  async place => {
    place.configure(OFFLINE)
    place.file('src/a.txt', 'one\nneedle\n')
    place.file('.env', 'SECRET=1\n')
    place.file('.git/hooks/sample', '')
    await withClient(place, {}, async client => {
      expect(await client.call('read_file', { path: 'src/a.txt' })).toEqual({
        failed: false,
        texts: ['11 bytes', 'one\nneedle\n'],
        facts: { size: 11, more: false, encoding: 'utf-8', content: 'one\nneedle\n' },
      })
      expect(await client.call('read_file', { path: 'src/a.txt', offset: 4, length: 3 })).toMatchObject({
        texts: ['3 bytes; continues at offset 7', 'nee'],
        facts: { more: true, nextOffset: 7, content: 'nee' },
      })
      expect(await client.call('write_file', { path: 'made/b.txt', content: 'new' })).toMatchObject({
        facts: { path: 'made/b.txt', size: 3 },
      })
      expect(readFileSync(join(place.project, 'made/b.txt'), 'utf8')).toBe('new')
      expect(await client.call('list_files', { path: 'src' })).toMatchObject({
        texts: ['1 names', 'a.txt  11'],
        facts: { more: 0, entries: [{ name: 'a.txt', kind: 'file', size: 11 }] },
      })
      const path = `${place.project}/src/a.txt`
      expect(await client.call('search_files', { pattern: 'n.edle' })).toMatchObject({
        texts: ['1 found', `${path}:2: needle`],
        facts: { more: false, matches: [{ path, line: 2, text: 'needle' }] },
      })
      place.file('image.bin', '\0\x01')
      expect(await client.call('read_file', { path: 'image.bin' })).toMatchObject({
        facts: { encoding: 'base64', content: 'AAE=' },
      })
      expect(await client.call('delete_file', { path: 'image.bin' })).toMatchObject({
        facts: { path: 'image.bin', deleted: true },
      })
      expect((await client.call('search_files', { name: '*.txt' })).texts[0]).toBe('2 found')

      const secret = await client.call('read_file', { path: '.env' })
      expect(secret).toMatchObject({ failed: true, facts: { error: { code: 'DENIED', retry: false } } })
      expect(secret.texts.join('\n')).not.toContain('SECRET=1')
      const hook = await client.call('write_file', { path: '.git/hooks/pre-commit', content: '#!/bin/sh' })
      expect(hook).toMatchObject({ failed: true, facts: { error: { code: 'DENIED' } } })
      expect(existsSync(join(place.project, '.git/hooks/pre-commit'))).toBe(false)
      expect(await client.call('read_file', { path: 'absent' })).toMatchObject({
        facts: { error: { code: 'NOT_FOUND' } },
      })
    })
  },
)

onGrounds(PROCESS, 'invalid arguments of a tool are refused, and nothing runs', async place => {
  place.configure(OFFLINE)
  await withClient(place, {}, async client => {
    for (const [name, given] of [
      ['run', {}],
      ['run', { command: 'touch ran', shell: 'bash' }],
      ['run', { command: ['touch', 'ran'] }],
      ['run', { command: 'touch ran', timeout_seconds: -1 }],
      ['run', { command: 'touch ran', timeout_seconds: 'soon' }],
      ['unknown', { command: 'touch ran' }],
      ['request_permission', {}],
      ['request_permission', { host: 'a.example:443', path: '/x' }],
      ['request_permission', { host: 'a.example:443; rm -rf /' }],
    ] as const)
      expect({ name, given, ...(await client.call(name, given)) }).toMatchObject({
        failed: true,
        facts: { error: expect.anything() },
      })
    expect(existsSync(join(place.project, 'ran'))).toBe(false)
    // The session goes on.
    expect((await client.call('run', { command: 'echo on' })).texts[1]).toBe('stdout:\non\n')
  })
})

onGrounds(PROCESS, 'a call that is cancelled ends its command', async place => {
  place.configure(OFFLINE)
  await withClient(place, {}, async client => {
    const cancel = new AbortController()
    const call = client
      .call('run', { command: 'touch begun; trap "" TERM; sleep 100' }, { signal: cancel.signal })
      .catch(() => 'cancelled')
    await until(() => existsSync(join(place.project, 'begun')))
    cancel.abort()
    expect(await call).toBe('cancelled')
    const left = async () => (await client.call('run', { command: 'pgrep -c sleep || true' })).texts[1]
    for (const late = performance.now() + 10_000; (await left()) !== 'stdout:\n0\n'; )
      if (performance.now() > late) throw new Error('it still runs')
  })
})

onGrounds(PROCESS, 'a connection is refused, requested, granted by the user, and works', async place => {
  place.configure()
  const recorder = await Recorder.open()
  try {
    await withClient(place, {}, async client => {
      const fetch = (path: string) =>
        client.call('run', { command: `bash -c ${quote(fetchScript(recorder.target, path))}` })
      const refused = await fetch('/first')
      expect(recorder.seen).toEqual([])
      expect(refused.facts['denials']).toMatchObject([
        { kind: 'network', target: recorder.target, permission: `pen allow ${recorder.target}` },
      ])
      expect(refused.texts[0]).toContain(`pen allow ${recorder.target}`)
      const asked = await client.call('request_permission', {
        host: recorder.target,
        reason: 'the tests need it',
      })
      expect(asked).toMatchObject({
        failed: true,
        facts: { granted: false, permission: `pen allow ${recorder.target}` },
      })
      const waiting = client.call('request_permission', { host: recorder.target, wait_seconds: 30 })
      expect(place.pen('allow', recorder.target, '--session')).toMatchObject({ code: 0 })
      expect(await waiting).toMatchObject({ failed: false, facts: { granted: true } })
      expect((await fetch('/second')).texts[1]).toContain('reached')
      expect(recorder.seen).toEqual(['/second'])
    })
  } finally {
    recorder.close()
  }
})

onGrounds(
  PROCESS,
  'where connections may be held, a request is in the audit for pen watch, and an answer ends it',
  async place => {
    place.configure({ network: { ask: 'hold' } })
    await withClient(place, {}, async client => {
      const waiting = client.call('request_permission', { host: 'api.example.com:443', wait_seconds: 30 })
      await until(
        () =>
          existsSync(join(place.stateDir, 'audit')) &&
          place.audit().some(({ kind }) => kind === 'connection-held'),
      )
      expect(place.audit().find(({ kind }) => kind === 'connection-held')).toMatchObject({
        name: 'api.example.com',
        port: 443,
      })
      expect(place.pen('allow', 'api.example.com:443', '--once')).toMatchObject({ code: 0 })
      expect(await waiting).toMatchObject({ facts: { granted: true } })
      // The request used no grant, and connected nowhere.
      expect(place.audit().some(({ kind }) => kind === 'connection-allowed')).toBe(false)
    })
  },
)

onGrounds(
  PROCESS,
  'a file of the user is requested, granted, read, and gone when the grant ends',
  async place => {
    place.configure(OFFLINE)
    const notes = place.file(join(place.home, 'notes.txt'), 'buy milk')
    await withClient(place, {}, async client => {
      expect(await client.call('read_file', { path: notes })).toMatchObject({
        facts: { error: { permission: `pen grant ${notes} --for 1h` } },
      })
      const waiting = client.call('request_permission', { path: notes, wait_seconds: 30 })
      expect(place.pen('grant', notes, '--for', '1m')).toMatchObject({ code: 0 })
      expect(await waiting).toMatchObject({ facts: { granted: true } })
      expect((await client.call('read_file', { path: notes })).texts[1]).toBe('buy milk')
      expect(place.pen('revoke', notes)).toMatchObject({ code: 0 })
      expect(await client.call('read_file', { path: notes })).toMatchObject({ failed: true })
    })
  },
)

onGrounds(
  PROCESS,
  'a sandbox of the user is joined and stays, also after it was killed and started again',
  async place => {
    place.configure(OFFLINE)
    expect(place.pen('start', '--detach')).toMatchObject({ code: 0 })
    await withClient(place, {}, async client => {
      expect((await client.call('run', { command: 'echo joined' })).texts[1]).toBe('stdout:\njoined\n')
      const supervisor = readFileSync(join(place.stateDir, 'supervisor.lock'), 'utf8').split(' ')[0]
      process.kill(Number(supervisor), 'SIGKILL')
      await until(async () => {
        const { texts } = await client.call('run', { command: 'echo again' })
        return texts[1] === 'stdout:\nagain\n'
      })
    })
    expect(place.isRunning()).toBe(true)
  },
)

onGrounds(PROCESS, 'a server that is killed leaves no sandbox that it started', async place => {
  place.configure(OFFLINE)
  await withClient(place, {}, async client => {
    await client.call('run', { command: 'true' })
    expect(place.isRunning()).toBe(true)
    process.kill(client.pid, 'SIGKILL')
    await until(() => !place.isRunning())
  })
})
