/** Runs `pen run` in a temporary project and home. The command prints its kernel status: seccomp and privileges. */
import { mkdirSync } from 'node:fs'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { type Finding, fails, lastLine, ok } from './finding.ts'
import type { Machine } from './machine.ts'

const TIME_LIMIT_MS = 20_000
/** Uses only shell built-ins, so that no other program is needed. */
const SHOW_STATUS = 'while read -r line; do echo "$line"; done </proc/self/status'

export async function checkSandbox({ scratch, env }: Machine): Promise<readonly Finding[]> {
  // The check of pen's state reports the reason.
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
    return [fails('run', 'pen run timed out', undefined, 'PEN_DEBUG=1 pen run -- true')]
  if (code !== 0) return [failure(code, stderr)]
  return [ok('run', 'pen run started and stopped a sandbox'), ...judgeStatus(stdout)]
}

function failure(code: number | null, stderr: string): Finding {
  const { what, hint } = errorIn(stderr)
  return fails('run', `pen run failed (${code === null ? 'signal' : `exit ${code}`})`, what, hint)
}

/** pen prints its error as JSON in the last line. Messages of tools may come before it. */
export function errorIn(stderr: string): { readonly what: string; readonly hint: string | undefined } {
  const line = lastLine(stderr)
  try {
    const { error } = JSON.parse(line) as { error: { what: string; hint: string | null } }
    return { what: error.what, hint: error.hint ?? undefined }
  } catch {
    return { what: line, hint: undefined }
  }
}

/** `Seccomp: 2` means that a filter is active. A sandbox has no capabilities. */
export function judgeStatus(status: string): Finding[] {
  const field = (name: string): string =>
    new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1] ?? 'unknown'
  const held = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].filter(name => !/^0+$/.test(field(name)))
  return [
    field('Seccomp') === '2'
      ? ok('seccomp', 'system calls are filtered')
      : fails('seccomp', 'system calls are not filtered', undefined, 'report this bug'),
    held.length === 0 && field('NoNewPrivs') === '1'
      ? ok('privileges', 'commands have no capabilities and cannot gain any')
      : fails(
          'privileges',
          `commands have privileges (${held.join(', ') || 'NoNewPrivs'})`,
          undefined,
          'report this bug',
        ),
  ]
}
