/** The examples run unchanged, on Node and on Bun, with pen as npm installs it, and with the real frameworks. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { install, usePackage } from './installed-package.ts'
import { onGrounds, type Place, PROCESS } from './place.ts'

const EXAMPLES = join(import.meta.dir, '../../examples')
const OFFLINE = { network: { offline: true } }

const PACKAGES = join(import.meta.dir, 'node_modules')

usePackage()

/** In a directory where npm installed pen, with the examples and their frameworks beside it. */
async function runExample(
  place: Place,
  runtime: string,
  program: string,
  args: readonly string[],
): Promise<string> {
  const dir = join(place.root, 'workshop')
  mkdirSync(dir)
  install(place, dir)
  for (const name of readdirSync(EXAMPLES))
    place.file(join(dir, name), await Bun.file(join(EXAMPLES, name)).text())
  const driver = 'tools-program.mjs'
  place.file(join(dir, driver), await Bun.file(join(import.meta.dir, driver)).text())
  for (const name of ['ai', '@langchain']) symlinkSync(join(PACKAGES, name), join(dir, 'node_modules', name))
  const words = place.argv(runtime === 'node' ? 'node' : process.execPath, join(dir, program), ...args)
  const [command, ...rest] = words
  const ran = spawnSync(command, rest, { cwd: dir, env: place.env, encoding: 'utf8', timeout: 60_000 })
  expect({ code: ran.status, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' })
  return ran.stdout
}

for (const runtime of ['node', 'bun'])
  onGrounds(
    PROCESS.slice(-1),
    `the command loop reports exit codes, timeouts and refusals, on ${runtime}`,
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
    `the tools for the AI SDK and for LangChain run, time out, and are refused in words, on ${runtime}`,
    async place => {
      place.configure(OFFLINE)
      place.file('open.txt', 'for everybody')
      place.file('.env', 'SECRET=1')
      const out = JSON.parse(
        await runExample(place, runtime, 'tools-program.mjs', [place.project]),
      ) as Record<string, unknown>
      expect(out).toMatchObject({
        text: 'run(command,timeoutSeconds) readFile(path)',
        heard: [
          { exitCode: 2, stdout: 'ai\n' },
          { timedOut: true },
          { error: expect.stringContaining('above exec.ceiling') },
          { content: 'for everybody' },
          { error: expect.stringContaining('DENIED') },
        ],
        names: ['run', 'request_permission'],
        chain: { exitCode: 0, stdout: 'chain\n' },
        asked: { granted: false, permission: 'pen grant /etc/shadow --for 1h' },
        wrong: expect.stringContaining('schema'),
      })
    },
  )
