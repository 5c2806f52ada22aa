/** One command removes pen, and removes nothing of the user's own. */
import { expect } from 'bun:test'
import { existsSync, lchownSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ordinary, PEN } from '../conformance/launcher.ts'
import { Screen } from '../conformance/screen.ts'
import { lives, until } from '../until.ts'
import { lifecycleTest, type ProjectSandbox, START } from './project-sandbox.ts'

const state = (here: ProjectSandbox): string => join(here.box.home, '.pen')

/**
 * Everything that pen stores, so that all of it could be left: a running sandbox with a volume, another
 * project, grants.
 */
async function live(here: ProjectSandbox): Promise<number[]> {
  const { box } = here
  const other = box.directory(join(box.home, 'other'))
  box.file('.pen/config.json', '{ "version": 1 }')
  box.file('agent-permissions.json', '{ "version": 1 }')
  box.file(join(box.home, 'notes.txt'), 'mine')
  here.configure(
    JSON.stringify({
      version: 1,
      backend: 'process',
      network: { offline: true, http: ['kept.example.com:443'] },
      mounts: [{ volume: 'cache', at: '/home/agent/cache' }],
    }),
  )
  expect(await here.pen(...START)).toMatchObject({ code: 0 })
  // A volume holds what a sandbox puts there, also directories without permissions.
  const filled =
    'mkdir -p ~/cache/a/b; echo v > ~/cache/a/b/v; chmod -R a-w ~/cache/a; setsid sleep 600 & echo up'
  expect(await here.sh(filled)).toMatchObject({ code: 0, stdout: 'up\n' })
  expect(await here.pen('grant', join(box.home, 'notes.txt'))).toMatchObject({ code: 0 })
  expect(await here.start([...START], { cwd: other }).ended).toMatchObject({ code: 0 })
  expect(here.supervisors()).toHaveLength(2)
  return here.supervisors()
}

lifecycleTest(
  'P4 pen uninstall ends all sandboxes and leaves nothing of pen; projects stay as they are',
  async here => {
    const supervisors = await live(here)
    const before = here.box.listing()
    const dry = await here.pen('uninstall', '--dry-run', '--json')
    expect(JSON.parse(dry.stdout)).toMatchObject({ removed: false, left: [] })
    expect(await here.pen('status')).toMatchObject({ code: 0 })
    expect(here.supervisors()).toEqual(supervisors)

    const done = await here.pen('uninstall', '--yes', '--json')
    const { things, left, stays } = JSON.parse(done.stdout)
    expect([done.code, left]).toEqual([0, []])
    expect(things).toEqual(JSON.parse(dry.stdout).things)
    expect(things.map(({ kind }: { kind: string }) => kind)).toEqual(['sandbox', 'sandbox', 'directory'])
    expect(stays.join()).toContain(PEN)
    expect(existsSync(state(here))).toBe(false)
    expect(supervisors.filter(lives)).toEqual([])
    expect(here.supervisors()).toEqual([])
    expect(here.box.listing()).toEqual(before)

    const again = await here.pen('uninstall', '--yes')
    expect(again).toMatchObject({ code: 0 })
    expect(again.stdout).toStartWith('nothing to remove\n')
    expect(existsSync(state(here))).toBe(false)
    // A later installation works, without old state.
    expect(await here.pen(...START)).toMatchObject({ code: 0 })
    expect((await here.pen('config', 'get', 'network.http')).stdout).not.toContain('kept.example.com')
  },
)

lifecycleTest(
  'P19 pen uninstall --keep-config leaves the complete configuration, and nothing else',
  async here => {
    await live(here)
    const config = readFileSync(join(here.stateDir, 'config.json'), 'utf8')
    expect(await here.pen('uninstall', '--yes', '--keep-config')).toMatchObject({ code: 0 })
    expect(here.supervisors()).toEqual([])
    expect(readdirSync(state(here), { recursive: true }).map(String).sort()).toEqual(
      ['', '/config.json']
        .map(name => `${here.stateDir}${name}`.slice(state(here).length + 1))
        .toSpliced(0, 0, 'sandboxes'),
    )
    expect(readFileSync(join(here.stateDir, 'config.json'), 'utf8')).toBe(config)
  },
  { users: 'ordinary' },
)

const RUN = ['run', '--backend', 'process', '--offline', '--', 'sh', '-c', 'echo up; sleep 600']

lifecycleTest(
  'P4 P18 pen uninstall and pen rm remove nothing during a pen run, and everything after it',
  async here => {
    for (const remove of [['uninstall'], ['rm', '--volumes']]) {
      here.configure()
      const run = here.start(RUN)
      await run.printed('up')
      const before = readdirSync(here.stateDir)
      const refused = await here.pen(...remove, '--yes')
      expect(refused).toMatchObject({ code: 125, stdout: '' })
      expect(refused.stderr).toContain(`a pen run still uses the sandbox ${basename(here.stateDir)}`)
      expect(lives(run.child.pid ?? 0)).toBe(true)
      expect(readdirSync(here.stateDir)).toEqual(expect.arrayContaining([...before, 'audit', 'config.json']))
      run.child.kill('SIGTERM')
      await run.ended
      expect(await here.pen(...remove, '--yes')).toMatchObject({ code: 0 })
      expect(existsSync(here.stateDir)).toBe(false)
    }
  },
)

lifecycleTest(
  'P4 files that pen did not make stay, and are reported; a link to the state is removed',
  async here => {
    const real = join(here.box.home, 'disk')
    renameSync(state(here), real)
    symlinkSync(real, state(here))
    const mine = here.box.file(join(real, 'mine.txt'), 'mine')
    const elsewhere = here.box.file(join(here.box.home, 'target/file'), 'mine')
    symlinkSync(join(here.box.home, 'target'), join(real, 'cache/link'))
    const notes = here.box.file(join(real, 'sandboxes/notes/mine.txt'), 'mine')
    here.box.file(join(real, 'sandboxes/readme'), 'mine')
    expect(await here.pen(...START)).toMatchObject({ code: 0 })
    const printed = await here.pen('uninstall', '--yes')
    expect(printed).toMatchObject({ code: 1 })
    expect(printed.stdout).toContain('mine.txt, notes, readme')
    expect([readdirSync(real).sort(), readFileSync(elsewhere, 'utf8')]).toEqual([
      ['mine.txt', 'sandboxes'],
      'mine',
    ])
    expect(readFileSync(notes, 'utf8')).toBe('mine')
    renameSync(mine, join(here.box.home, 'mine.txt'))
    renameSync(join(real, 'sandboxes'), join(here.box.home, 'target/theirs'))
    expect(await here.pen('uninstall', '--yes')).toMatchObject({ code: 0 })
    expect(readdirSync(here.box.home).sort()).toEqual(['mine.txt', 'project', 'target'])
  },
  { users: 'ordinary' },
)

lifecycleTest('P2 pen uninstall and pen gc follow no link of another user', async here => {
  if (ordinary === undefined || here.box.launcher.who.uid !== 0) return
  const file = here.box.file(join(here.box.home, 'roots/cache/file'), 'mine')
  renameSync(state(here), join(here.box.home, 'own'))
  symlinkSync(join(here.box.home, 'roots'), state(here))
  lchownSync(state(here), ordinary.uid, ordinary.gid)
  for (const remove of [['gc'], ['uninstall', '--yes']]) {
    const refused = await here.pen(...remove)
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('belongs to another user')])
  }
  expect(readFileSync(file, 'utf8')).toBe('mine')
  lchownSync(state(here), 0, 0)
  expect(await here.pen('uninstall', '--yes')).toMatchObject({ code: 0 })
  expect(existsSync(file)).toBe(false)
})

lifecycleTest(
  'P16 pen uninstall asks, and only yes removes',
  async here => {
    await here.pen(...START)
    const [pid] = here.supervisors()
    expect(await here.pen('uninstall')).toMatchObject({ code: 2 })
    expect(await here.start(['uninstall', '--yes'], { env: { AGENT_IN_SANDBOX: '1' } }).ended).toMatchObject({
      code: 125,
    })
    for (const [answer, code] of [
      ['no\r', 1],
      ['yes\r', 0],
    ] as const) {
      expect(here.supervisors()).toEqual([pid ?? 0])
      using screen = new Screen(here.box, `command ${PEN} uninstall; echo "code $?"`)
      await screen.shows('Type "yes" to confirm:')
      screen.type(answer)
      await screen.shows(`code ${code}`)
    }
    await until(() => here.supervisors().length === 0)
    expect(existsSync(state(here))).toBe(false)
  },
  { users: 'ordinary' },
)
