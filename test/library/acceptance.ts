/**
 * The four acceptance tests of a secure agent (secrets, writes outside, network, tools), each by the library,
 * by MCP and by the command line, on every backend. Every way into a sandbox has the same limits, and each
 * limit has a policy setting that opens it.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim, Place } from './place.ts'
import { Recorder } from './recorder.ts'
import { byEachWay, type Way } from './ways.ts'

/**
 * The programs that try what is refused, and how. The soft backend's gate refuses any program that the policy
 * does not list. A listed program is past the gate, so the twins use other programs.
 */
const KERNEL = { reader: 'cat', writer: 'touch', list: ['cat', 'curl', 'sh', 'touch'], shell: true }
const GATE = { reader: 'head', writer: 'truncate', list: ['curl', 'head', 'truncate'], shell: undefined }

const isSoft = (place: Place): boolean => place.ground.backend === 'soft'
const twins = (place: Place) => (isSoft(place) ? GATE : KERNEL)
/** The supervisor's records. Commands such as `pen grant` have files of their own beside it. */
function records(place: Place): Line[] {
  const lines = place.audit()
  const starts = lines.filter(line => line['kind'] === 'run-start')
  const last = starts.reduce((a, b) => (String(a['time']) > String(b['time']) ? a : b))
  return lines.filter(line => line['run'] === last['run'])
}

/** Records of one kind since `mark`, by the words of `field`. */
const recorded = (place: Place, mark: number, kind: string, field: (line: Line) => unknown): unknown[] =>
  records(place)
    .slice(mark)
    .filter(line => line['kind'] === kind)
    .map(field)

type Line = Record<string, unknown>

async function secrets(way: Way, place: Place): Promise<void> {
  const hidden = ['.env', '.ssh/id_ed25519', 'other/secret.txt'].map((name, i) =>
    join(i === 0 ? place.project : place.home, name),
  )
  const mark = records(place).length
  for (const path of hidden) {
    const { code, out } = await way.run('cat', path)
    expect({ way: way.name, path, out, failed: code !== 0 }).toMatchObject({ failed: true })
    expect(out).not.toContain('SECRET')
    if (way.files === undefined) continue
    expect({ way: way.name, path, ...(await way.files.read(path)) }).toMatchObject({ refused: 'DENIED' })
    expect(recorded(place, mark, 'file-denied', line => line['path'])).toContain(path)
  }
  expect(await way.run(twins(place).reader, 'open.txt')).toEqual({
    code: 0,
    out: expect.stringContaining('for everybody'),
  })
  if (way.files === undefined) return
  expect(await way.files.read('open.txt')).toEqual({ text: 'for everybody' })
  const [granted = ''] = hidden.slice(-1)
  expect(place.pen('grant', granted, '--for', '10m')).toMatchObject({ code: 0 })
  expect(await way.files.read(granted)).toEqual({ text: 'SECRET OF ANOTHER PROJECT' })
  expect(await way.files.write(granted, 'changed')).toEqual({ refused: 'DENIED' })
  expect(place.pen('revoke', granted)).toMatchObject({ code: 0 })
  expect(await way.files.read(granted)).toEqual({ refused: 'DENIED' })
}

async function writes(way: Way, place: Place): Promise<void> {
  const outside = [
    join(place.project, '.git/hooks/pre-commit'),
    join(place.home, 'planted'),
    join(place.home, 'other/planted'),
  ]
  const kept = join(place.home, 'other/secret.txt')
  for (const path of outside) {
    await way.run('touch', path)
    const written = await way.files?.write(path, 'planted')
    expect({ way: way.name, written }).toEqual({ way: way.name, written: way.files && { refused: 'DENIED' } })
    expect({ way: way.name, path, exists: existsSync(path) }).toEqual({ way: way.name, path, exists: false })
  }
  await way.files?.delete(kept)
  expect(existsSync(kept)).toBe(true)
  const inside = `${way.name.replaceAll(' ', '-')}.txt`
  const { writer } = twins(place)
  expect(await way.run(writer, ...(writer === 'truncate' ? ['-s', '0'] : []), inside)).toMatchObject({
    code: 0,
  })
  expect(existsSync(join(place.project, inside))).toBe(true)
  if (way.files === undefined) return
  expect(await way.files.write(inside, 'inside')).toHaveProperty('text')
  expect(readFileSync(join(place.project, inside), 'utf8')).toBe('inside')
  expect(await way.files.delete(inside)).toHaveProperty('text')
  expect(existsSync(join(place.project, inside))).toBe(false)
}

interface Hosts {
  readonly allowed: Recorder
  readonly refused: Recorder
}

async function network(way: Way, place: Place, { allowed, refused }: Hosts): Promise<void> {
  const fetch = (target: string, path = '/') => way.run('curl', '-s', '-m', '10', `http://${target}${path}`)
  const targets = [refused.target, 'refused.example.com:80', '169.254.169.254:80', '203.0.113.9:80']
  const mark = records(place).length
  for (const target of targets) await fetch(target)
  expect(
    recorded(place, mark, 'connection-denied', ({ name, address, port }) => `${name ?? address}:${port}`),
  ).toEqual(targets)
  expect(refused.seen).toEqual([])
  expect(await fetch(allowed.target, '/allowed')).toMatchObject({ code: 0, out: 'reached\n' })
  expect(allowed.seen.splice(0)).toEqual(['/allowed'])
}

async function tools(way: Way, place: Place): Promise<void> {
  const mark = records(place).length
  for (const words of [['env'], ['/usr/bin/env'], ['perl', '-e', 'print "ran"']]) {
    const { code, out } = await way.run(...words)
    expect({ way: way.name, words, code }).toMatchObject({ code: isSoft(place) ? 126 : 127 })
    expect(out).not.toMatch(/^AGENT_IN_SANDBOX|^ran/m)
  }
  // Starting a missing program fails with its reason, by the library and by MCP.
  const reasons = recorded(place, mark, 'tool-denied', line => line['reason'])
  if (isSoft(place) || way.files !== undefined) expect(reasons).toEqual(Array(3).fill('not-listed'))
}

/**
 * Whether commands of a running sandbox may only execute listed files. Then files that it wrote do not run
 * either.
 */
const holdsExec = ({ ground }: Place): boolean => ground.backend !== 'soft'

async function noShell(way: Way, place: Place): Promise<void> {
  const made = (name: string): boolean => existsSync(join(place.project, name))
  for (const shell of ['sh', '/bin/sh', 'bash'])
    expect((await way.run(shell, '-c', 'echo > by-shell')).code).not.toBe(0)
  expect(made('by-shell')).toBe(false)
  if (way.files !== undefined && holdsExec(place)) {
    await way.files.write('written', '#!/usr/bin/touch\n', true)
    expect(await way.run('./written', 'by-written')).toMatchObject({ code: 126 })
    expect(made('by-written')).toBe(false)
  }
  const name = way.name.replaceAll(' ', '-')
  expect(await way.run('touch', name)).toMatchObject({ code: 0 })
  expect(made(name)).toBe(true)
}

async function withSandbox(place: Place, config: object, body: () => Promise<void>): Promise<void> {
  place.configure(config)
  expect(place.pen('start', '--detach')).toMatchObject({ code: 0 })
  await body()
  expect(place.pen('stop')).toMatchObject({ code: 0 })
}

export const acceptance: Claim = async place => {
  place.file(join(place.home, '.ssh/id_ed25519'), 'SECRET KEY OF THE HOST')
  place.file(join(place.home, 'other/secret.txt'), 'SECRET OF ANOTHER PROJECT')
  place.file('.env', 'SECRET OF THE PROJECT')
  place.file('open.txt', 'for everybody')
  place.file('.git/hooks/sample', '')
  const hosts = { allowed: await Recorder.open(), refused: await Recorder.open() }
  const { list, shell } = twins(place)
  const listed = { tools: { allow: list, ...(shell && { shell }) } }
  try {
    await withSandbox(place, { network: { tcp: [hosts.allowed.target] }, ...listed }, () =>
      byEachWay(place, async way => {
        await secrets(way, place)
        await writes(way, place)
        await network(way, place, hosts)
        await tools(way, place)
      }),
    )
    const offline = { network: { offline: true } }
    const exec = holdsExec(place) ? 'listed' : 'any'
    await withSandbox(place, { ...offline, tools: { shell: false, allow: ['touch'], exec } }, () =>
      byEachWay(place, way => noShell(way, place)),
    )
    const soft = records(place).map(line => line['soft'] === true)
    expect([...new Set(soft)]).toEqual([isSoft(place)])
  } finally {
    for (const host of Object.values(hosts)) host.close()
  }
}

export const TITLE =
  'P1 P2 P6 P20 by every way in: no secret, no write outside, no host and no tool but allowed ones'
