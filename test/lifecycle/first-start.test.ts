/** The first command in a project without config: on a machine without an engine, with one, and with its image. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { lchownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultRecipe } from '../../src/image/recipe.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { denyAll } from '../../src/policy/policy.ts'
import { Box } from '../conformance/box.ts'
import { isRoot, LAUNCHERS, type Launcher } from '../conformance/launcher.ts'
import { ANY_BACKEND } from '../conformance/test-backend.ts'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { onlyWhen } from '../skip.ts'
import { ProjectSandbox } from './project-sandbox.ts'

const onEachEngine = everyEngine()
// Programs are hidden by a mount, which needs root.
const asRoot = onlyWhen(isRoot)

const ORDER = JSON.stringify({ policy: {}, offline: false, allowUserExpansion: false })
/** Each starts the sandbox when none runs. The last is what the library and MCP do. */
const FIRST: readonly (readonly [words: readonly string[], stdin: string])[] = [
  [['exec', '--', 'true'], ''],
  [['start', '--detach'], ''],
  [['shell'], 'exit 0\n'],
  [['__start'], ORDER],
]

const launcherOf = (engine: TestEngine, env = engine.env): Launcher => ({
  name: engine.name,
  who: engine.who,
  ...ANY_BACKEND,
  flags: ['--backend', 'process', '--offline'],
  env,
  start: () => {
    throw new Error('nothing runs here: it stays')
  },
})

async function inProject(launcher: Launcher, body: (here: ProjectSandbox) => Promise<void>): Promise<void> {
  const box = new Box(launcher)
  const here = new ProjectSandbox(box)
  try {
    await body(here)
  } finally {
    await here.pen('stop')
    box.remove()
  }
}

const backendOf = async (here: ProjectSandbox): Promise<string> =>
  JSON.parse((await here.pen('status', '--json')).stdout).backend

/** All first commands work, each in a process sandbox. The very first one says so. */
async function worksInProcesses(here: ProjectSandbox, note: boolean): Promise<void> {
  for (const [index, [words, stdin]] of FIRST.entries()) {
    const first = await here.start(words, { stdin }).ended
    expect([words, first.code, first.stderr]).toEqual([words, 0, first.stderr])
    if (index === 0) {
      expect(first.stderr).toContain('started the sandbox of this project')
      const says = expect.stringContaining('pen build makes the image')
      expect(first.stderr).toEqual(note ? says : expect.not.stringContaining('pen build makes the image'))
    }
    if (words[0] !== '__start') expect([words, await backendOf(here)]).toEqual([words, 'process'])
    await here.pen('stop')
  }
}

/** What the engine lacks while this is in use: an empty store, or an image without its name. */
function withoutImage(engine: TestEngine): { readonly env: TestEngine['env']; restore(): void } {
  if (engine.backend === 'docker') return untagged(engine)
  const { uid, gid } = engine.who
  const dir = mkdtempSync(join(tmpdir(), 'pen-empty-'))
  for (const name of ['', 'storage', 'run', 'data']) {
    mkdirSync(join(dir, name), { recursive: true })
    lchownSync(join(dir, name), uid, gid)
  }
  const conf = join(dir, 'storage.conf')
  const places = `driver = "overlay"\ngraphroot = "${dir}/storage"\nrunroot = "${dir}/run"\n`
  writeFileSync(conf, `[storage]\n${places}`)
  return {
    // Podman without root stores the path of its storage there.
    env: { ...engine.env, CONTAINERS_STORAGE_CONF: conf, XDG_DATA_HOME: join(dir, 'data') },
    restore: () => {
      spawnSync('umount', [`${dir}/storage/overlay`])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const NAME = defaultRecipe(denyAll('/' as HostPath)).name

function untagged(engine: TestEngine): { readonly env: TestEngine['env']; restore(): void } {
  const ask = (...argv: string[]) => {
    const [program = '', ...rest] = engine.command(argv)
    return spawnSync(program, rest, { encoding: 'utf8', timeout: 30_000 })
  }
  const aside = 'pen-test-aside:latest'
  const was = ask('tag', NAME, aside).status === 0
  if (was) ask('rmi', NAME)
  return {
    env: engine.env,
    restore: () => {
      if (was) ask('tag', aside, NAME)
      ask('rmi', aside)
    },
  }
}

onEachEngine(
  'P20 the first command works with an engine without image, in a process sandbox that says so',
  async engine => {
    const { env, restore } = withoutImage(engine)
    try {
      await inProject(launcherOf(engine, env), here => worksInProcesses(here, true))
    } finally {
      restore()
    }
  },
)

onEachEngine(
  'P20 a sandbox is a container once its image exists, and stays one without it',
  engine => {
    const env = { ...engine.env }
    return inProject(launcherOf(engine, env), async here => {
      // The first command that names a container builds the image.
      expect(await here.pen('start', '--detach', '--backend', engine.backend)).toMatchObject({ code: 0 })
      await here.pen('stop')
      expect(await here.pen('start', '--detach')).toMatchObject({ code: 0 })
      expect(await backendOf(here)).toBe(engine.backend)
      const pid = here.supervisor() ?? 0
      process.kill(pid, 'SIGKILL')
      // A broken engine: a container comes back as nothing else.
      Object.assign(env, { CONTAINERS_STORAGE_CONF: '/nowhere', DOCKER_HOST: 'unix:///nowhere' })
      const refused = await here.sh('true')
      expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('pen stop')])
      Object.assign(env, engine.env)
      expect(await here.sh('true')).toMatchObject({ code: 0 })
      expect(await backendOf(here)).toBe(engine.backend)
    })
  },
  180_000,
)

/** A command line in a mount namespace in which these programs are empty files. */
const hiding = (programs: readonly string[], become: readonly string[]): readonly string[] => [
  'unshare',
  '-m',
  'sh',
  '-c',
  `for tool in ${programs.join(' ')}; do for at in /usr/local/bin/$tool /usr/bin/$tool; do [ ! -e $at ] || mount --bind /dev/null "$(readlink -f $at)"; done; done; exec "$@"`,
  'sh',
  ...become,
]

for (const launcher of LAUNCHERS) {
  const { who } = launcher
  const hidden = (...programs: string[]): Launcher => ({
    ...launcher,
    who: { ...who, become: hiding(programs, who.become) },
  })
  asRoot(
    `P20 the first command works without an engine (as ${who.name})`,
    () => inProject(hidden('podman', 'docker'), here => worksInProcesses(here, false)),
    60_000,
  )

  asRoot(
    `P20 without bubblewrap, and with an engine, the first command says what to do (as ${who.name})`,
    () =>
      inProject(hidden('bwrap'), async here => {
        for (const [words, stdin] of FIRST.slice(0, 2)) {
          const refused = await here.start(words, { stdin }).ended
          expect([words, refused.code, refused.stderr]).toEqual([
            words,
            125,
            expect.stringContaining('pen start --isolation container'),
          ])
        }
      }),
  )
}
