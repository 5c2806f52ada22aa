/** Whether this machine can enforce the policy of this project, and whether `pen run` works. */
import { mkdirSync } from 'node:fs'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { openGaps } from '../plan/gaps.ts'
import { prepare } from '../run/prepare.ts'
import { fails, hintOf, lastLine, type Machine, messageOf, ok, type Result, type Results } from './finding.ts'

/** Loads the policy as in `pen run`. Starts nothing. */
export async function checkPolicy({ project, env }: Machine): Promise<Results> {
  if (project === undefined) return []
  try {
    const { loaded, plan } = await prepare({
      project,
      command: [],
      env,
      allowUserExpansion: false,
      offline: false,
      flags: {},
    })
    const gaps = openGaps(plan.gaps, loaded.policy.acceptGaps)
    if (gaps.length === 0) return ok("this machine can enforce this project's policy")
    return fails(
      "this machine cannot enforce all of this project's policy",
      gaps.map(({ name, why }) => `${name}: ${why}`).join('; '),
      `pen run ${gaps.map(({ name }) => `--accept-gap ${name}`).join(' ')}, or change the policy`,
    )
  } catch (error) {
    return fails("this project's policy is not valid", messageOf(error), hintOf(error))
  }
}

const TIME_LIMIT_MS = 20_000
/** Uses only shell built-ins, so that no other program is needed. */
const SHOW_STATUS = 'while read -r line; do echo "$line"; done </proc/self/status'

/** Runs `pen run` in a temporary project and home. The command prints its kernel status: seccomp and privileges. */
export async function checkSandbox({ scratch, env }: Machine): Promise<Results> {
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
  if (ended === 'timeout') return fails('pen run timed out', undefined, 'PEN_DEBUG=1 pen run -- true')
  if (code === 0) return [ok('pen run started and stopped a sandbox'), ...judgeStatus(stdout)]
  const { what, hint } = errorIn(stderr)
  return fails(`pen run failed (${code === null ? 'signal' : `exit ${code}`})`, what, hint)
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
export function judgeStatus(status: string): Result[] {
  const field = (name: string): string =>
    new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1] ?? 'unknown'
  const held = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].filter(name => !/^0+$/.test(field(name)))
  const seccomp =
    field('Seccomp') === '2'
      ? ok('system calls are filtered')
      : fails('system calls are not filtered', undefined, 'report this bug')
  const privileges =
    held.length === 0 && field('NoNewPrivs') === '1'
      ? ok('commands have no capabilities and cannot gain any')
      : fails(`commands have privileges (${held.join(', ') || 'NoNewPrivs'})`, undefined, 'report this bug')
  return [
    { id: 'seccomp', ...seccomp },
    { id: 'privileges', ...privileges },
  ]
}
