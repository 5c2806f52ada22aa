import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { HOOKED_AGENTS } from './agents.ts'
import { hookLine } from './install.ts'
import { type CallContext, judgeCall } from './judge-call.ts'

const context = {
  agent: HOOKED_AGENTS['claude-code'],
  pen: ['/opt/my pen/pen'],
  world: {
    workspace: '/work/it\'s a "project"',
    home: '/home/you',
    state: '/home/you/.pen',
    locate: (path: string) => ({ real: path, kind: path.includes('absent') ? 'absent' : 'file' }),
  },
  cwd: '/work',
  own: [],
  policy: () => Promise.reject(new Error('not needed')),
} as unknown as CallContext

const rewritten = async (command: string): Promise<string> => {
  const verdict = await judgeCall({ tool: 'Bash', input: { command, timeout: 5 } }, context)
  if (verdict.kind !== 'rewrite') throw new Error('not rewritten')
  expect(verdict.input['timeout']).toBe(5)
  return String(verdict.input['command'])
}

test('any command is the last word of pen exec, for every shell of the host', async () => {
  const commands = [
    `true'; touch x; '`,
    '"$(touch x)"',
    "cat <<'E'\n$HOME\nE\n",
    '\\',
    "'",
    '`touch x`',
    '!x',
    'é\u2028',
  ]
  for (const shell of ['sh', 'bash'])
    for (const command of commands) {
      const line = (await rewritten(command)).replace("'/opt/my pen/pen'", `printf '%s\\0'`)
      const { stdout } = spawnSync(shell, ['-c', line], { encoding: 'utf8' })
      const words = stdout.split('\0').slice(0, -1)
      expect(words.slice(0, 5)).toEqual(['exec', '--project', context.world.workspace, '--', 'sh'])
      expect(words.slice(-1)).toEqual([command])
    }
})

test('a command without its quotes has no character that a shell reads', async () => {
  const lines: string[] = []
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...["'", '"', '\\', '\n', '$', '`', ' ', 'a', 'é', ';', '!']) }),
      text => void lines.push(text),
    ),
    { numRuns: 100 },
  )
  for (const command of lines) {
    const bare = (await rewritten(command)).replace(/'[^']*'|"'"/g, '')
    expect(bare).toMatch(/^[\w./ @%+=:,-]*$/)
  }
})

test('tools that walk the tree, unknown tools with a command, and odd paths are refused', async () => {
  const refused = async (tool: string, input: object) =>
    (await judgeCall({ tool, input: input as Record<string, unknown> }, context)).kind
  for (const [tool, input] of [
    ['Grep', { pattern: 'x' }],
    ['NewShell', { command: 'id' }],
    ['Bash', { command: 'a\0b' }],
    ['Bash', {}],
    ['Read', {}],
    ['Read', { file_path: ' /etc/shadow' }],
    ['Read', { file_path: '/work/absent' }],
    ['Write', { file_path: '@/etc/shadow' }],
    ['Write', { file_path: '/work/e\u0301' }],
  ] as const)
    expect([tool, await refused(tool, input)]).toEqual([tool, 'refuse'])
  expect(await refused('WebFetch', { url: 'https://example.com' })).toBe('pass')
  expect(await refused('mcp__mine__run', { command: 'x' })).toBe('pass')
})

test('a hook line without pen blocks, with a reason', () => {
  const line = hookLine('codex', undefined).replaceAll(' __hook', '-gone __hook')
  const { status, stderr, stdout } = spawnSync('/bin/sh', ['-c', line], { encoding: 'utf8', input: '{}' })
  expect([status, stdout, stderr]).toEqual([2, '', expect.stringContaining('nothing was run')])
})
