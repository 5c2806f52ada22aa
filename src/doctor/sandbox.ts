/**
 * The last word: `pen run` itself, in a project and a home that this examination made. The command prints what the kernel
 * says of it, so that filter and privileges are seen from inside.
 */
import { mkdirSync } from 'node:fs'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { type Finding, fails, lastLine, ok } from './finding.ts'
import type { Machine } from './machine.ts'

const TIME_LIMIT_MS = 20_000
/** By the shell alone: no other program has to be there. */
const SHOW_STATUS = 'while read -r line; do echo "$line"; done </proc/self/status'

export async function checkSandbox({ scratch, env }: Machine): Promise<readonly Finding[]> {
  // The state says why.
  if (scratch === undefined) return []
  const home = `${scratch}/home`
  const project = `${scratch}/project`
  for (const dir of [home, project]) mkdirSync(dir, { recursive: true, mode: 0o700 })
  const { code, stdout, stderr, ended } = await capture(
    [...ownProgram(), 'run', '--json', '--wall', '15s', '--', 'sh', '-c', SHOW_STATUS],
    {
      env: { HOME: home, PATH: env['PATH'] ?? '/usr/bin:/bin', TERM: 'dumb' },
      cwd: project,
      timeoutMs: TIME_LIMIT_MS,
      maxOutput: 256 * 1024,
    },
  )
  if (ended === 'timeout')
    return [fails('run', 'pen run did not end in time', undefined, 'repeat it with PEN_DEBUG=1')]
  if (code !== 0) return [failure(code, stderr)]
  return [ok('run', 'pen run started a sandbox and ended it'), ...judgeStatus(stdout)]
}

function failure(code: number | null, stderr: string): Finding {
  const told = toldBy(stderr)
  return fails('run', `pen run ended with ${code ?? 'a signal'}`, told.what, told.hint)
}

/** The error that pen prints as JSON stands last; before it may stand what a tool said. */
export function toldBy(stderr: string): { readonly what: string; readonly hint: string | undefined } {
  const line = lastLine(stderr)
  try {
    const { error } = JSON.parse(line) as { error: { what: string; hint: string | null } }
    return { what: error.what, hint: error.hint ?? undefined }
  } catch {
    return { what: line, hint: undefined }
  }
}

/** `Seccomp: 2` is a filter; the capabilities of a sandbox are none at all. */
export function judgeStatus(status: string): Finding[] {
  const field = (name: string): string =>
    new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1] ?? 'unknown'
  const held = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].filter(name => !/^0+$/.test(field(name)))
  return [
    field('Seccomp') === '2'
      ? ok('seccomp', 'the system calls of its command were filtered')
      : fails('seccomp', 'the system calls of its command were not filtered', undefined, 'report this'),
    held.length === 0 && field('NoNewPrivs') === '1'
      ? ok('privileges', 'its command had no capability and could get none')
      : fails(
          'privileges',
          `its command had privileges (${held.join(', ') || 'NoNewPrivs'})`,
          undefined,
          'report this',
        ),
  ]
}
