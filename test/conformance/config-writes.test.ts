/** What the commands of `pen config` write when the machine fails in the middle. */
import { expect } from 'bun:test'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { onTheHost } from './conformance.ts'
import { ordinary, PEN } from './launcher.ts'
import { CALLS, configOf, inject, leftovers, pen, start } from './pen-command.ts'

const LIVE = '{"version":1,"limits":{"pids":100}}\n'
const PROJECT = '{"version":1,"limits":{"pids":200}}\n'

/** A project whose two configurations differ, both known byte by byte. */
async function differing(box: Box): Promise<string> {
  if (!existsSync(join(box.home, '.pen/sandboxes'))) await pen(box, 'config', 'set', 'limits.pids', '1')
  box.file(configOf(box), LIVE, 0o600)
  box.file('.pen/config.json', PROJECT)
  return await digest(box)
}

async function digest(box: Box): Promise<string> {
  const shown = box.host(`${PEN} config diff || true`)
  return /sha256:[0-9a-f]{64}/.exec(shown)?.[0] ?? ''
}

const live = (box: Box): string => readFileSync(configOf(box), 'utf8')
const project = (box: Box): string => readFileSync(join(box.project, '.pen/config.json'), 'utf8')
/** Files that no command may leave in the project. */
const strays = (box: Box): string[] =>
  readdirSync(join(box.project, '.pen')).filter(name => !['config.json', 'config.schema.json'].includes(name))

/** Each command with the results it may leave in the two configurations, and nothing between. */
const COMMANDS: readonly {
  readonly name: string
  readonly args: (digest: string) => readonly string[]
  readonly live: string
  readonly project: string
}[] = [
  {
    name: 'apply',
    args: expected => ['config', 'apply', '--yes', '--expect', expected],
    live: PROJECT,
    project: PROJECT,
  },
  {
    name: 'set',
    args: () => ['config', 'set', 'limits.pids', '300'],
    live: '{\n  "version": 1,\n  "limits": {\n    "pids": 300\n  }\n}\n',
    project: PROJECT,
  },
  { name: 'backup', args: () => ['config', 'backup'], live: LIVE, project: LIVE },
]

for (const command of COMMANDS)
  onTheHost(
    `P19 SIGKILL at any call of pen config ${command.name} leaves the old or new config, and no lock`,
    async box => {
      let killed = 0
      for (const call of CALLS)
        for (const nth of [1, 2, 3]) {
          const args = command.args(await differing(box))
          const { code } = await start(box, args, inject(call, 'signal=SIGKILL', nth)).ended
          if (code !== 0) killed++
          expect([LIVE, command.live]).toContain(live(box))
          expect([PROJECT, command.project]).toContain(project(box))
          if (code === 0) expect([live(box), project(box)]).toEqual([command.live, command.project])
        }
      expect(killed).toBeGreaterThanOrEqual(6)
      const again = await pen(box, ...command.args(await differing(box)))
      expect([again.stderr, again.code]).toEqual(['', 0])
      expect([live(box), project(box)]).toEqual([command.live, command.project])
      expect([leftovers(box), strays(box)]).toEqual([[], []])
    },
    { users: 'ordinary' },
  )

for (const command of COMMANDS)
  onTheHost(
    `P19 a disk error under pen config ${command.name} leaves the old or new config and an error message`,
    async box => {
      let failed = 0
      for (const [call, error] of [
        ['fsync', 'ENOSPC'],
        ['fsync', 'EIO'],
        ['rename', 'EROFS'],
        ['pwrite64,write', 'ENOSPC'],
      ] as const)
        for (const nth of [1, 2]) {
          const args = command.args(await differing(box))
          const { code, stderr } = await start(box, args, inject(call, `error=${error}`, nth)).ended
          expect([LIVE, command.live]).toContain(live(box))
          expect([PROJECT, command.project]).toContain(project(box))
          if (code !== 0) failed++
          if (code !== 0) expect(stderr).toMatch(/pen: STATE: could not write .*\(E[A-Z]+\)/)
          if (code === 0) expect([live(box), project(box)]).toEqual([command.live, command.project])
          expect([leftovers(box), strays(box)]).toEqual([[], []])
        }
      expect(failed).toBeGreaterThanOrEqual(4)
    },
    { users: 'ordinary' },
  )

onTheHost(
  'P19 concurrent edits, backups and applies lose nothing',
  async box => {
    const expected = await differing(box)
    const names = Array.from({ length: 8 }, (_, i) => `V${i}`)
    const done = await Promise.all([
      ...names.map(name => pen(box, 'config', 'set', `env.${name}`, '1')),
      ...names.map(name => pen(box, 'allow', `${name.toLowerCase()}.example.com`)),
      ...[1, 2, 3].map(() => pen(box, 'config', 'backup')),
      pen(box, 'config', 'apply', '--yes', '--expect', expected),
    ])
    const apply = done.pop()
    expect(done.map(({ code }) => code).filter(code => code !== 0)).toEqual([])
    // Either it came first, or it detected the other edit.
    expect([0, 2, 125]).toContain(apply?.code ?? -1)
    const config = JSON.parse(live(box)) as { env: object; network: { http: readonly string[] } }
    expect(new Set(Object.keys(config.env))).toEqual(new Set(names))
    expect(config.network.http.length).toBe(names.length)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P5 files that root writes into another user’s project belong to that user',
  async box => {
    const { uid, gid } = ordinary ?? box.launcher.who
    chownSync(box.project, uid, gid)
    expect((await pen(box, 'init')).code).toBe(0)
    const owners = ['.pen', '.pen/config.json', '.pen/config.schema.json'].map(name => {
      const stats = lstatSync(join(box.project, name))
      return [stats.uid, stats.gid]
    })
    expect(owners).toEqual([
      [uid, gid],
      [uid, gid],
      [uid, gid],
    ])
    expect(lstatSync(configOf(box)).uid).toBe(0)
  },
  { only: ({ who }) => who.uid === 0 && ordinary !== undefined },
)

onTheHost(
  'P2 a backup writes through no link, whether it is there before or appears meanwhile',
  async box => {
    await differing(box)
    const outside = box.directory(join(box.home, 'outside'))
    const swap = join(box.project, '.pen')
    const real = join(box.project, 'real')
    let swapped = 0
    const turn = () => {
      if (swapped++ % 2 === 0) {
        renameSync(swap, real)
        symlinkSync(outside, swap)
      } else {
        rmSync(swap, { recursive: true, force: true })
        renameSync(real, swap)
      }
    }
    const timer = setInterval(() => {
      try {
        turn()
      } catch {
        // The backup was between its two steps. The next round continues from there.
      }
    }, 3)
    const codes: (number | null)[] = []
    for (let i = 0; i < 25; i++) codes.push((await pen(box, 'config', 'backup')).code)
    clearInterval(timer)
    expect(codes.filter(code => code !== 0 && code !== 2 && code !== 125)).toEqual([])
    expect(readdirSync(outside)).toEqual([])
    // The allowed twin: with nothing in the way it is written.
    rmSync(swap, { recursive: true, force: true })
    mkdirSync(real, { recursive: true })
    rmSync(real, { recursive: true })
    expect((await pen(box, 'config', 'backup')).code).toBe(0)
    expect(project(box)).toBe(LIVE)
  },
)
