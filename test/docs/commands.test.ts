/**
 * Every command that a page shows is run as a person would: in a fresh project, with a home of its own, by an ordinary user of a
 * machine whose outside is the test's. page.ts says how a page marks what it shows.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PRESETS } from '../../src/policy/presets.ts'
import { ordinary } from '../conformance/launcher.ts'
import type { Project } from '../conformance/network/project.ts'
import { inWorld, isReady, KINDS, World } from '../conformance/network/world.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { list, read } from '../repo/sources.ts'
import { skipUnless } from '../skip.ts'
import { type Block, blocksOf, type Command, patternOf } from './page.ts'

const pages = ['README.md', 'CONTRIBUTING.md', ...list('docs', ['.md'])]
const shown = pages.flatMap(page => blocksOf(read(page)).map(block => ({ page, block })))

const missing = isReady && ordinary !== undefined ? podmanMissing(ordinary) : 'no machine of namespaces'
const onEngine = skipUnless(missing === undefined, `commands that need a container engine: ${missing}`)

/** Nobody can install the agents here: in their places stand programs that only say what they were asked. */
beforeAll(async () => {
  if (!isReady) return
  const world = await World.get()
  const bin = join(world.dir, 'bin')
  mkdirSync(bin)
  for (const { command } of Object.values(PRESETS)) {
    writeFileSync(join(bin, command[0]), '#!/bin/sh\necho "asked: $*"\n')
    chmodSync(join(bin, command[0]), 0o755)
  }
  Bun.spawnSync([...world.on('host'), 'mount', '--bind', bin, '/usr/local/bin'])
})

/** What the pages take for granted: a project with something to test, and a repository. */
const FURNISH = `set -e
git init -q . && git config user.name you && git config user.email you@example.com
mkdir -p src && echo 'export const answer = 42' > src/answer.js
echo '{ "name": "project", "scripts": { "test": "node --version" } }' > package.json
printf 'all:\\n\\ttrue\\n' > Makefile
printf '#!/bin/sh\\n' > untrusted && chmod +x untrusted
echo 'SECRET=1' > .env
git add package.json src && git commit -q -m first`

interface Ended {
  readonly code: number | null
  readonly output: string
}

function run(
  world: World,
  project: Project,
  command: Command,
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const user = KINDS[1]?.user ?? ''
  const words = [...world.on('host', user), 'env', '-C', project.workspace, 'bash', '-c', command.text]
  const child = spawn(words[0] ?? '', words.slice(1), {
    env: {
      HOME: project.home,
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
  // One that goes on needs no more than to have begun.
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

async function runBlock(block: Block): Promise<void> {
  const world = await World.get()
  using project = world.project(KINDS[1] ?? { name: '', user: '' })
  const furnished = await run(world, project, { ...PLAIN, text: FURNISH }, {})
  expect(furnished).toEqual({ code: 0, output: '' })
  const env = block.needsEngine && ordinary !== undefined ? podmanOf(ordinary).env : {}
  try {
    for (const command of block.commands) await check(world, project, command, env)
  } finally {
    // Whatever a page leaves running, and however it fails.
    if (block.commands.some(({ text }) => /\bpen (start|restart|exec|shell)\b/.test(text)))
      await run(world, project, { ...PLAIN, text: 'pen stop' }, env)
  }
}

async function check(
  world: World,
  project: Project,
  command: Command,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const { code, output } = await run(world, project, command, env)
  const ends = command.untilInterrupted ? [0, 130] : [command.exit]
  if (!ends.includes(code ?? -1))
    throw new Error(
      `line ${command.line}: ${command.text}\nended with ${code}, not ${command.exit}:\n${output}`,
    )
  const named = output.replaceAll(project.workspace, '~/project').replaceAll(project.home, '~')
  if (command.prints !== undefined && !patternOf(command.prints).test(named))
    throw new Error(`line ${command.line}: ${command.text}\nprinted:\n${named}`)
}

const PLAIN: Command = { line: 0, text: '', exit: 0, untilInterrupted: false, prints: undefined }

for (const { page, block } of shown) {
  if (block.commands.length === 0) continue
  if (block.notRun !== undefined) {
    console.log(`not run: ${page}:${block.line}: ${block.notRun}`)
    continue
  }
  const define = block.needsEngine ? onEngine : inWorld
  define(`${page}:${block.line} does what it says`, () => runBlock(block), 120_000)
}

describe('what pages show', () => {
  test('a block with commands of pen says that it holds commands', () => {
    const unmarked = shown.filter(
      ({ block }) =>
        block.commands.length === 0 && block.text.some(line => /^(\$ )?(\.\/)?pen [a-z]/.test(line)),
    )
    expect(unmarked.map(({ page, block }) => `${page}:${block.line}`)).toEqual([])
  })

  test('whatever is not run has a reason of more than a word', () => {
    const reasons = shown.flatMap(({ block }) => block.notRun ?? [])
    expect(reasons.filter(reason => reason.split(' ').length < 3)).toEqual([])
  })
})
