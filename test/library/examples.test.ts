/** The examples run as they stand, on Node and on Bun, against the library as it is built. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import { onGrounds, type Place, PROCESS } from './place.ts'
import { LIBRARY } from './program.ts'

const EXAMPLES = join(import.meta.dir, '../../examples')
const OFFLINE = { network: { offline: true } }

/** In a directory in which `pen` is installed as npm would leave it, with the examples beside. */
async function runExample(
  place: Place,
  runtime: string,
  program: string,
  args: readonly string[],
): Promise<string> {
  const dir = join(place.root, 'workshop')
  mkdirSync(join(dir, 'node_modules/pen'), { recursive: true })
  for (const name of readdirSync(EXAMPLES))
    place.file(join(dir, name), await Bun.file(join(EXAMPLES, name)).text())
  place.file(
    join(dir, 'tools-program.mjs'),
    await Bun.file(join(import.meta.dir, 'tools-program.mjs')).text(),
  )
  place.file(
    join(dir, 'node_modules/pen/package.json'),
    '{ "name": "pen", "type": "module", "exports": "./index.js" }',
  )
  symlinkSync(LIBRARY, join(dir, 'node_modules/pen/index.js'))
  const [command, ...rest] = place.argv(
    runtime === 'node' ? 'node' : process.execPath,
    join(dir, program),
    ...args,
  )
  const ran = spawnSync(command, rest, {
    cwd: dir,
    env: { ...place.env, PEN },
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect({ code: ran.status, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' })
  return ran.stdout
}

for (const runtime of ['node', 'bun'])
  onGrounds(
    PROCESS.slice(-1),
    `the loop of commands tells ends, times and refusals, on ${runtime}`,
    async place => {
      place.configure()
      const out = await runExample(place, runtime, 'command-loop.mjs', [
        place.project,
        'echo one',
        'sleep 60',
        "bash -c 'exec 3<>/dev/tcp/denied.example/443; echo x >&3; cat <&3' 2>/dev/null",
        'exit 3',
      ])
      expect(out).toContain('$ echo one\none\n→ exit 0')
      expect(out).toContain('$ sleep 60\n→ timed out')
      expect(out).toContain(
        '→ refused: denied.example:443: no rule allows denied.example; to allow it: pen allow denied.example:443',
      )
      expect(out).toContain('$ exit 3\n→ exit 3')
      expect(place.isRunning()).toBe(false)
    },
  )

for (const runtime of ['node', 'bun'])
  onGrounds(
    PROCESS.slice(-1),
    `the tools for two frameworks run, time out, and are refused in words, on ${runtime}`,
    async place => {
      place.configure(OFFLINE)
      place.file('open.txt', 'for everybody')
      place.file('.env', 'SECRET=1')
      const out = JSON.parse(
        await runExample(place, runtime, 'tools-program.mjs', [place.project]),
      ) as Record<string, unknown>
      expect(out).toMatchObject({
        names: ['run', 'readFile', 'run'],
        ran: { exitCode: 2, stdout: 'ai\n' },
        late: true,
        read: { content: 'for everybody' },
        refused: { error: expect.stringContaining('DENIED') },
        chain: { exitCode: 0, stdout: 'chain\n' },
        asked: { granted: false, permission: 'pen grant /etc/shadow --for 1h' },
      })
    },
  )
