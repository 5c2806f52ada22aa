/** `pen mcp` with real clients. Each claim is about what the model received: that is all it knows of a sandbox. */
import { expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { inPlace, onProcess, type Place, PROCESS } from '../library/place.ts'
import { skipUnless } from '../skip.ts'
import { type AgentClient, drive, OBJECT_CLIENTS, TEXT_CLIENTS } from './mcp-client.ts'
import { missingAgents } from './programs.ts'

// The clients run as the user of the tests: other users may not read their files.
const ground = PROCESS.find(({ who }) => who.uid === process.getuid?.())
const missing = missingAgents()
const onAgents = missing.length === 0 ? onProcess : skipUnless(false, `missing: ${missing.join(', ')}`)

const object = (text: string | undefined): unknown => JSON.parse(text ?? '')

function claim(
  clients: readonly AgentClient[],
  title: string,
  body: (client: AgentClient, place: Place) => Promise<void>,
): void {
  for (const client of clients)
    onAgents(
      `${title} (${client.name})`,
      async () => {
        if (ground === undefined) throw new Error('the user that runs the tests is not one of the test users')
        await inPlace(ground, place => body(client, place))
      },
      60_000,
    )
}

claim(
  OBJECT_CLIENTS,
  'the model receives output, contents, matches and names, and a denial with its fix',
  async (client, place) => {
    place.configure()
    place.file('.env', 'SECRET=1\n')
    const { said, model } = await drive(client, place, [
      ['run', { command: 'pwd; echo oops >&2; exit 3' }],
      ['write_file', { path: 'notes.txt', content: 'a needle\n' }],
      ['read_file', { path: 'notes.txt' }],
      ['search_files', { pattern: 'needle' }],
      ['list_files', {}],
      ['read_file', { path: '.env' }],
      ['run', { command: 'bash -c "exec 3<>/dev/tcp/refused.example.com/80 && echo x >&3 && cat <&3"' }],
      ['request_permission', { host: 'refused.example.com:80', reason: 'the test needs it' }],
      ['run', { command: 'true', shell: 'bash' }],
      ['delete_file', { path: 'notes.txt' }],
    ])
    expect(object(said[0])).toEqual({
      exitCode: 3,
      timedOut: false,
      truncated: false,
      limit: null,
      denials: [],
      stdout: `${place.project}\n`,
      stderr: 'oops\n',
    })
    expect(object(said[1])).toEqual({ path: 'notes.txt', size: 9 })
    expect(object(said[2])).toMatchObject({ content: 'a needle\n', more: false })
    const path = join(place.project, 'notes.txt')
    expect(object(said[3])).toEqual({
      more: false,
      notSearched: [],
      matches: [{ path, line: 1, text: 'a needle' }],
    })
    expect(object(said[4])).toMatchObject({
      entries: expect.arrayContaining([{ name: 'notes.txt', kind: 'file', size: 9 }]),
    })
    expect(said[5]).toContain('DENIED')
    expect(said[5]).toContain('.env')
    expect(said.join('')).not.toContain('SECRET=1')
    const allow = 'pen allow refused.example.com:80'
    expect(object(said[6])).toMatchObject({
      denials: [{ kind: 'network', target: 'refused.example.com:80', permission: allow }],
    })
    expect(said[7]).toContain(allow)
    expect(said[8]).toMatch(/unknown argument \\?"shell/)
    expect(object(said[9])).toMatchObject({ deleted: true })
    expect(existsSync(path)).toBe(false)
    // Only pen's tools can run a command.
    expect(model.offered.filter(name => /bash|shell|exec_command/i.test(name))).toEqual([])
  },
)

claim(
  OBJECT_CLIENTS,
  'the model learns of a timeout, of truncated or binary output, and of a file with more pages',
  async (client, place) => {
    place.configure({ network: { offline: true } })
    place.file('long.txt', 'é'.repeat(50_000))
    const { said } = await drive(client, place, [
      ['run', { command: 'echo partly; sleep 60', timeout_seconds: 0.5 }],
      ['run', { command: 'head -c 1000000 /dev/zero | tr "\\0" x' }],
      ['run', { command: 'printf "a\\\\0b"' }],
      ['read_file', { path: 'long.txt', offset: 99_000 }],
      ['read_file', { path: 'long.txt', length: 1001 }],
      ['read_file', { path: 'absent.txt' }],
    ])
    expect(object(said[0])).toMatchObject({ exitCode: 124, timedOut: true, stdout: 'partly\n' })
    expect(said[1]).toContain('"truncated":true')
    expect(object(said[2])).toMatchObject({ binary: ['stdout'], stdout: 'a\ufffdb' })
    expect(object(said[3])).toMatchObject({ size: 1000, more: false, content: 'é'.repeat(500) })
    expect(object(said[4])).toMatchObject({ size: 1000, more: true, nextOffset: 1000 })
    expect(said[5]).toContain('absent.txt does not exist')
  },
)

claim(
  TEXT_CLIENTS,
  'a client that passes on texts alone shows the model the same facts',
  async (client, place) => {
    place.configure({ network: { offline: true } })
    place.file('.env', 'SECRET=1\n')
    const { said, model } = await drive(client, place, [
      ['run', { command: 'pwd; echo oops >&2; exit 3' }],
      ['write_file', { path: 'notes.txt', content: 'a needle\n' }],
      ['read_file', { path: 'notes.txt' }],
      ['search_files', { pattern: 'needle' }],
      ['read_file', { path: '.env' }],
    ])
    for (const part of ['exit code 3', `stdout:\n${place.project}\n`, 'stderr:\noops'])
      expect(said[0]).toContain(part)
    expect(said[2]).toContain('a needle')
    expect(said[3]).toContain(`${place.project}/notes.txt:1: a needle`)
    expect(said[4]).toContain('DENIED')
    expect(said.join('')).not.toContain('SECRET=1')
    // Only pen's tools can run a command or touch a file.
    expect(model.offered.filter(name => !name.startsWith(client.tool('')))).toEqual([])
  },
)
