/** Where else the value of a secret could show: commands of pen, errors, state, core dumps, and what a model gets. */
import { expect } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { withClient } from './mcp-client.ts'
import { onGrounds, PROCESS } from './place.ts'

const KEY = 'ghp_ZQXJKWzqxjkw0123456789ZQXJKWzqxjkwAB'
const SHAPE = /ghp_[A-Z]{6}[a-z]{6}[0-9]{10}[A-Z]{6}[a-z]{6}[A-Z]{2}/
const GROUNDS = PROCESS.map(ground => ({ ...ground, env: { ...ground.env, HOST_KEY: KEY } }))
const config = (from: object) => ({
  network: { http: ['allowed.test:443'] },
  secrets: [{ name: 'API_KEY', from, to: ['allowed.test:443'] }],
})

const COMMANDS = [
  'status --json',
  'stats --json',
  'ls --json',
  'plan --json',
  'plan',
  'config show --json',
  'config get secrets',
  'secret list --json',
  'secret test API_KEY',
  'policy explain allowed.test:443',
  'logs --all --json',
  'logs --all',
  'run --dry-run-policy -- true',
  'run --debug -- true',
]

/** Ends with a core dump, where the machine makes one. */
const CRASH = 'ulimit -c unlimited 2>/dev/null; sh -c \'kill -ABRT $$\'; echo "$API_KEY"; env'

onGrounds(
  GROUNDS,
  'P22 no command, no error and no tool of MCP shows a secret of a sandbox that stays',
  async place => {
    place.configure(config({ env: 'HOST_KEY' }))
    const said: string[] = []
    await withClient(place, {}, async client => {
      const ran = await client.call('run', { command: CRASH })
      expect(ran.texts.join()).toMatch(SHAPE)
      const state = await client.call('read_file', { path: join(place.stateDir, 'config.json') })
      expect(state.failed).toBe(true)
      said.push(JSON.stringify([ran, state]))
      const inside = place.pen('exec', '--', 'sh', '-c', 'cat /proc/*/environ 2>/dev/null; set').said
      expect(inside).toMatch(SHAPE)
      said.push(inside)
      // As an argument: the user's own shell expanded it.
      for (const [where, words] of Object.entries({
        'the variable HOST_KEY': ['--env', 'HOST_KEY', '--', 'env'],
        'a word of the command': ['--', 'echo', `Bearer ${KEY}`],
      })) {
        const { code, said: refused } = place.pen('exec', ...words)
        expect([code, refused]).toEqual([126, expect.stringContaining(`in ${where}`)])
        said.push(refused)
      }
      expect(place.pen('exec', '--env', 'HOME', '--', 'true').code).toBe(0)
      for (const words of COMMANDS) {
        const { code, said: printed } = place.pen(...words.split(' '))
        expect([words, code]).toEqual([words, 0])
        said.push(printed)
      }
    })
    place.pen('stop')
    for (const [name, text] of Object.entries({
      spaced: `${KEY} ${KEY}`,
      short: 'zqxjkwz',
      plain: '-'.repeat(40),
    })) {
      const file = place.file(join(place.home, name), text, 0o600)
      place.configure(config({ file }))
      const failed = place.pen('run', '--', 'true')
      expect([failed.code, failed.said]).toEqual([2, expect.stringContaining('the secret API_KEY')])
      expect(failed.said).not.toContain(text)
      said.push(failed.said)
    }
    said.push(textsIn(place.stateDir), textsIn(place.project))
    for (const text of said) expect(text).not.toContain('ZQXJKWzq')
  },
)

function textsIn(directory: string): string {
  let out = ''
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat?.isFile() && stat.size < 50_000_000) out += readFileSync(path, 'latin1')
  }
  return out
}
