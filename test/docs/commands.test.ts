/**
 * Runs every command that a page shows, as a person would: in a new project with its own home, as an ordinary user.
 * The outside of the machine is the test's. page.ts says how a page marks its commands.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PRESETS } from '../../src/policy/presets.ts'
import { ordinary } from '../conformance/launcher.ts'
import { inWorld, isReady, KINDS, World } from '../conformance/network/world.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { list, read } from '../repo/sources.ts'
import { skipUnless } from '../skip.ts'
import { type Block, blocksOf, type Command, patternOf } from './page.ts'

const pages = ['README.md', 'CONTRIBUTING.md', ...list('docs', ['.md'])]
const shown = pages.flatMap(page => blocksOf(read(page)).map(block => ({ page, block })))

/** Blocks that run in one project: one block, and those that continue it. */
const chains: { readonly page: string; readonly blocks: Block[] }[] = []
for (const { page, block } of shown) {
  const last = chains.at(-1)
  if (block.commands.length === 0) continue
  if (block.ways.has('after the block above') && last?.page === page) last.blocks.push(block)
  else if (block.notRun === undefined) chains.push({ page, blocks: [block] })
  else console.log(`not run: ${page}:${block.line}: ${block.notRun}`)
}

const missing = isReady && ordinary !== undefined ? podmanMissing(ordinary) : 'no machine of namespaces'
const onEngine = skipUnless(missing === undefined, `commands that need a container engine: ${missing}`)

/** What the commands of a cloud print, in the shapes that their documentation describes. */
const AWS = `#!/bin/sh
case "$*" in
  configure*) echo '{ "AccessKeyId": "AKIAEXAMPLE0EXAMPLE0", "SecretAccessKey": "example/example/0123", "SessionToken": "example//example==" }' ;;
  sts*) echo "asked: $*, by $AWS_ACCESS_KEY_ID\${AWS_SESSION_TOKEN:?}" ;;
  *) echo "asked: $*" ;;
esac
`

/** The agents cannot be installed here. Programs in their places print their arguments. */
beforeAll(async () => {
  if (!isReady) return
  const world = await World.get()
  const bin = join(world.dir, 'bin')
  mkdirSync(bin)
  const programs = Object.values(PRESETS).map(({ command }) => [command[0], '#!/bin/sh\necho "asked: $*"\n'])
  for (const [name = '', text = ''] of [...programs, ['aws', AWS]]) {
    writeFileSync(join(bin, name), text)
    chmodSync(join(bin, name), 0o755)
  }
  const make = `mount --bind ${bin} /usr/local/bin && mount -t tmpfs none /home && mkdir ${HOME}`
  expect(Bun.spawnSync([...world.on('host'), 'sh', '-c', make]).exitCode).toBe(0)
})

/** What the pages assume: a project with something to test, and a repository. */
const HOME = '/home/you'
const FURNISH = `set -e
mkdir ~/data ~/reports && echo 'apples 1' > ~/data/prices.csv && echo '# May' > ~/reports/may.md
git init -q . && git config user.name you && git config user.email you@example.com
mkdir -p src && echo 'export const answer = 42' > src/answer.js
echo '{ "name": "project", "scripts": { "test": "node --version" } }' > package.json
echo '{ "name": "project", "lockfileVersion": 3, "packages": { "": { "name": "project" } } }' > package-lock.json
printf 'all:\\n\\ttrue\\n' > Makefile
printf '#!/bin/sh\\n' > untrusted && chmod +x untrusted
echo 'SECRET=1' > .env
cp ~/reports/may.md . && git add package*.json src && git commit -q -m first`

interface Ended {
  readonly code: number | null
  readonly output: string
}

type Env = Readonly<Record<string, string>> & { readonly HOME: string }

function run(world: World, command: Command, env: Env): Promise<Ended> {
  const user = KINDS[1]?.user ?? ''
  const words = [...world.on('host', user), 'env', '-C', `${env.HOME}/project`, 'bash', '-c', command.text]
  const child = spawn(words[0] ?? '', words.slice(1), {
    env: {
      PATH: `${world.dir}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      TERM: 'dumb',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      output += data.toString()
    })
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, name)
  }
  // A command that keeps running only has to start.
  const interrupt = command.untilInterrupted ? setTimeout(() => signal('SIGINT'), 1000) : undefined
  const giveUp = setTimeout(() => signal('SIGKILL'), 50_000)
  return new Promise(resolve =>
    child.once('close', (code, by) => {
      clearTimeout(interrupt)
      clearTimeout(giveUp)
      resolve({ code: by === 'SIGINT' ? 130 : code, output })
    }),
  )
}

async function runChain(blocks: readonly Block[]): Promise<void> {
  const world = await World.get()
  using project = world.project(KINDS[1] ?? { name: '', user: '' })
  // Rootless podman stays in the mounts that it first saw, so its home is the real one.
  const isPlain = !blocks.some(({ ways }) => ways.has('with a container engine'))
  const home = isPlain ? HOME : project.home
  const mount = (...words: string[]) => isPlain && Bun.spawnSync([...world.on('host'), ...words])
  mount('mount', '--bind', project.home, HOME)
  const commands = blocks.flatMap(block => block.commands.map(command => ({ command, ways: block.ways })))
  const envOf = (ways: Block['ways']) => ({
    HOME: home,
    ...(ways.has('with a container engine') && ordinary !== undefined ? podmanOf(ordinary).env : {}),
  })
  try {
    expect(await run(world, { ...PLAIN, text: FURNISH }, { HOME: home })).toEqual({ code: 0, output: '' })
    for (const { command, ways } of commands) {
      const quoted = command.text.replaceAll("'", "'\\''")
      const text = ways.has('in a sandbox') ? `pen run -- bash -c '${quoted}'` : command.text
      await check(world, { ...command, text }, envOf(ways))
    }
  } finally {
    // Stops whatever a page leaves running, however it fails.
    const kept = commands.find(({ command }) => /\bpen (start|restart|exec|shell)\b/.test(command.text))
    if (kept !== undefined) await run(world, { ...PLAIN, text: 'pen stop' }, envOf(kept.ways))
    mount('umount', '--lazy', HOME)
  }
}

async function check(world: World, command: Command, env: Env): Promise<void> {
  const { code, output } = await run(world, command, env)
  const ends = command.untilInterrupted ? [0, 130] : [command.exit]
  if (!ends.includes(code ?? -1))
    throw new Error(
      `line ${command.line}: ${command.text}\nended with ${code}, not ${command.exit}:\n${output}`,
    )
  if (command.prints !== undefined && !patternOf(command.prints).test(output.replaceAll(env.HOME, HOME)))
    throw new Error(`line ${command.line}: ${command.text}\nprinted:\n${output}`)
}

const PLAIN: Command = { line: 0, text: '', exit: 0, untilInterrupted: false, prints: undefined }

/** An engine's first test loads the base image, which takes minutes on a busy machine. */
const ENGINE_TIMEOUT_MS = 300_000

for (const { page, blocks } of chains) {
  const needsEngine = blocks.some(({ ways }) => ways.has('with a container engine'))
  const define = needsEngine ? onEngine : inWorld
  define(
    `${page}:${blocks[0]?.line} does what it says`,
    () => runChain(blocks),
    needsEngine ? ENGINE_TIMEOUT_MS : 120_000,
  )
}

describe('what pages show', () => {
  test('a block with commands of pen is marked as commands', () => {
    const unmarked = shown.filter(
      ({ block }) =>
        block.commands.length === 0 && block.text.some(line => /^(\$ )?(\.\/)?pen [a-z]/.test(line)),
    )
    expect(unmarked.map(({ page, block }) => `${page}:${block.line}`)).toEqual([])
  })

  test('every block that is not run has a reason of more than one word', () => {
    const reasons = shown.flatMap(({ block }) => block.notRun ?? [])
    expect(reasons.filter(reason => reason.split(' ').length < 3)).toEqual([])
  })
})
