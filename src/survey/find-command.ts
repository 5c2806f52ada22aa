/**
 * Finds the command inside the sandbox before anything starts. "Not found" and "not executable" then get a shell's exit
 * codes and an explanation, instead of an engine's error.
 */
import { accessSync, constants, statSync } from 'node:fs'
import { EXIT, type ExitCode } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { shellWord } from '../base/printable.ts'
import { readProgramHead } from '../base/program-head.ts'
import type { Plan } from '../plan/plan.ts'
import { HOME_TOOLCHAINS } from '../plan/system-view.ts'
import { isWithin, normalize } from '../policy/files/path.ts'
import { realPath } from './git/directory.ts'
import { inWords, type Taken } from './tool-words.ts'

export type Found =
  | { readonly ok: true }
  | { readonly ok: false; readonly exitCode: ExitCode; readonly what: string; readonly hint: string }

export function findCommand(plan: Plan, hostPath: string): Found {
  const [name = ''] = plan.argv
  if (name === '') return notFound('the command is an empty word', 'name a program: pen run -- COMMAND')
  const candidates = name.includes('/')
    ? [normalize(name.startsWith('/') ? name : `${plan.cwd}/${name}`)]
    : (plan.env.find(variable => variable.name === 'PATH')?.value ?? '')
        .split(':')
        .map(dir => `${dir}/${name}`)
  let refused: 'refused' | 'directory' | undefined
  let taken: Taken | undefined
  let lost: string | undefined
  for (const candidate of candidates) {
    const away = takenAway(candidate, plan)
    taken ??= away
    if (away !== undefined) continue
    const state = lookInside(candidate, plan)
    if (state === 'runs') return withInterpreter(name, candidate, plan)
    if (state === 'unknown') return { ok: true }
    if (state === 'refused' || state === 'directory') refused ??= state
    if (state === 'lost') lost ??= candidate
  }
  if (taken !== undefined && refused === undefined) {
    const { what, hint } = inWords(name, taken)
    return notFound(what, hint)
  }
  if (refused !== undefined) return notExecutable(name, refused)
  const what = `${name} is not found in the sandbox`
  if (lost !== undefined)
    return notFound(
      `${what}: ${lost} is a link that leads out of it`,
      hostHasTargetOf(toHost(lost, plan)?.path ?? lost, plan),
    )
  const elsewhere = (name.includes('/') ? candidates : hostPath.split(':').map(dir => `${dir}/${name}`)).find(
    path => path.startsWith('/') && look(path) === 'runs',
  )
  if (elsewhere === undefined)
    return notFound(what, 'check the spelling; `pen plan` shows what the sandbox sees')
  // Granting a link shows its target, under the target's own path.
  const real = `${realPath(dirname(elsewhere)) ?? dirname(elsewhere)}/${basename(elsewhere)}`
  if (lookInside(real, plan) === 'runs')
    return notFound(what, `it is at ${real}, which PATH does not name: call it by that, or correct PATH`)
  return notFound(what, hostHas(real, plan))
}

const notFound = (what: string, hint: string): Found => ({
  ok: false,
  exitCode: EXIT.notFound,
  what,
  hint,
})

const notExecutable = (name: string, state: 'refused' | 'directory'): Found => ({
  ok: false,
  exitCode: EXIT.notExecutable,
  ...(state === 'directory'
    ? { what: `${name} is a directory`, hint: 'name a program; `pen run` alone opens a shell' }
    : {
        what: `${name} cannot be executed`,
        hint: 'make it executable (chmod +x), or run its interpreter',
      }),
})

function hostHas(path: string, plan: Plan, directories = directoriesOf(path)): string {
  const isShown = (part: string) =>
    plan.steps.some(step => step.op !== 'seal' && step.at.endsWith(`/${part}`))
  const toolchain = HOME_TOOLCHAINS.some(part => path.includes(`/${part}/`) && !isShown(part))
  const reads = directories.map(dir => `--read ${shellWord(dir) ?? 'its directory'}`)
  return `the host has it at ${path}, which this policy does not show: use ${toolchain ? '--profile dev, or ' : ''}${reads.join(' ')}`
}

/** The sandbox sees the link, but not the file that it leads to. */
function hostHasTargetOf(link: string, plan: Plan): string {
  const missing = directoriesOf(link).filter(dir => toHost(dir, plan) === undefined)
  return hostHas(realPath(link) ?? link, plan, missing)
}

/**
 * The directories that a program needs. A package manager puts a link into `PREFIX/bin` and the program into
 * `PREFIX/lib`. A hidden directory such as `~/.npm-global` is granted as a whole; of `~/.local` or a home only the two.
 */
function directoriesOf(path: string): readonly string[] {
  const dir = dirname(path)
  const real = realPath(path) ?? path
  if (isWithin(real, dir)) return [dir]
  const prefix = dirname(dir)
  if (!isWithin(real, prefix) || prefix === '/') return [dir, dirname(real)]
  const name = basename(prefix)
  if (name.startsWith('.') && name !== '.local') return [prefix]
  const [part = ''] = real.slice(prefix.length + 1).split('/')
  return [dir, `${prefix}/${part}`]
}

/** For a script without its interpreter the kernel says "no such file"; pen says which file is missing. */
function withInterpreter(name: string, path: string, plan: Plan): Found {
  const host = toHost(path, plan)
  const head = host === undefined ? undefined : readProgramHead(host.path)
  if (head?.kind !== 'script') return { ok: true }
  const state = lookInside(normalize(head.interpreter), plan)
  if (state === 'runs' || state === 'unknown') return { ok: true }
  const windows = head.interpreter.endsWith('\r')
  return {
    ok: false,
    exitCode: EXIT.notExecutable,
    what: `${name} cannot be executed: its interpreter ${head.interpreter} is ${state === 'absent' || state === 'lost' ? 'not found' : 'not executable'} in the sandbox`,
    hint: windows
      ? "its lines end as on Windows: take the carriage returns away, as with sed -i 's/\\r$//' FILE"
      : 'correct the first line of the script, or run its interpreter by name',
  }
}

type Look = 'runs' | 'refused' | 'directory' | 'absent'

/** Private directories are empty at the start. The content of `/dev` and `/proc` is the engine's and unknown here. */
function lookInside(path: string, plan: Plan): Look | 'unknown' | 'lost' {
  const host = toHost(path, plan)
  if (host !== undefined) return lookThroughLinks(host, plan)
  if (plan.steps.some(({ op, at }) => (op === 'devices' || op === 'processes') && isWithin(path, at)))
    return 'unknown'
  const place = plan.steps.find(({ at }) => isWithin(at, path))
  if (place === undefined) return 'absent'
  return place.at === path && place.op === 'file' ? 'refused' : 'directory'
}

/** Inside, a link is resolved in the sandbox's view. Here it is resolved in the host's files. */
function lookThroughLinks({ path, root }: OnHost, plan: Plan): Look | 'lost' {
  const state = look(path)
  const real = state === 'absent' ? undefined : realPath(path)
  if (real === undefined || isWithin(real, root)) return state
  const there = toHost(real, plan)
  return there === undefined ? 'lost' : look(there.path) === 'absent' ? 'lost' : state
}

/** Whether the tool policy hides a program that the host has at this path. */
function takenAway(path: string, plan: Plan): Taken | undefined {
  const shells = plan.steps.flatMap(step =>
    step.op === 'cover' && step.why === 'tools.shell' ? [step.at] : [],
  )
  const directories = plan.steps.flatMap(step => (step.op === 'seal' ? [step.at] : []))
  if (shells.length === 0 && directories.length <= 2) return undefined
  // System programs have the same path on the host.
  const real = realPath(path)
  if (real === undefined || look(real) !== 'runs') return undefined
  if (shells.some(shell => shell === real)) return 'no shell'
  const shown = plan.steps.some(step => (step.op === 'bind' || step.op === 'link') && step.at === real)
  const listing = directories.some(at => at !== '/' && at !== '/dev' && isWithin(real, at))
  return listing && !shown ? 'not listed' : undefined
}

function look(path: string): Look {
  try {
    const stat = statSync(path)
    if (stat.isDirectory()) return 'directory'
    if (!stat.isFile()) return 'refused'
  } catch {
    return 'absent'
  }
  try {
    accessSync(path, constants.X_OK)
    return 'runs'
  } catch {
    return 'refused'
  }
}

interface OnHost {
  readonly path: string
  /** The mounted tree that contains it. */
  readonly root: string
}

/** The host path of a path inside, by the mounts of the plan. Undefined when no mount shows it. */
function toHost(path: string, plan: Plan): OnHost | undefined {
  // Without mounts, the sandbox sees the host's files.
  if (plan.steps.length === 0) return { path, root: '/' }
  const link = plan.steps.find(step => step.op === 'link' && isWithin(path, step.at))
  if (link?.op === 'link')
    return toHost(
      normalize(`${link.to.startsWith('/') ? '' : `${link.at}/../`}${link.to}${path.slice(link.at.length)}`),
      plan,
    )
  let best: { at: string; from: string | undefined } | undefined
  for (const step of plan.steps) {
    if (step.op === 'seal' || step.op === 'link' || !isWithin(path, step.at)) continue
    if (best === undefined || step.at.length >= best.at.length)
      best = { at: step.at, from: step.op === 'bind' ? step.from : undefined }
  }
  return best?.from === undefined
    ? undefined
    : { path: best.from + path.slice(best.at.length), root: best.from }
}
