/**
 * Where the command will be found inside, asked before anything starts: "not found" and "not executable" get a shell's
 * exit codes and an explanation, instead of an engine's error.
 */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { EXIT, type ExitCode } from '../base/error.ts'
import { readProgramHead } from '../base/program-head.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin, normalize } from '../policy/path.ts'
import { inWords, type Taken } from './tool-words.ts'

export type Found =
  | { readonly ok: true }
  | { readonly ok: false; readonly exitCode: ExitCode; readonly what: string; readonly hint: string }

export function findCommand(plan: Plan, hostPath: string): Found {
  const [name = ''] = plan.argv
  const candidates = name.includes('/')
    ? [normalize(name.startsWith('/') ? name : `${plan.cwd}/${name}`)]
    : (plan.env.find(variable => variable.name === 'PATH')?.value ?? '')
        .split(':')
        .map(dir => `${dir}/${name}`)
  let refused = false
  let taken: Taken | undefined
  for (const candidate of candidates) {
    const away = takenAway(candidate, plan)
    taken ??= away
    if (away !== undefined) continue
    const state = lookInside(candidate, plan)
    if (state === 'runs') return withInterpreter(name, candidate, plan)
    if (state === 'unknown') return { ok: true }
    if (state === 'refused') refused = true
  }
  if (taken !== undefined && !refused) return { ok: false, exitCode: EXIT.notFound, ...inWords(name, taken) }
  if (refused && name !== '')
    return {
      ok: false,
      exitCode: EXIT.notExecutable,
      what: `${name} cannot be executed`,
      hint: 'make it executable (chmod +x), or run its interpreter',
    }
  const elsewhere = hostPath
    .split(':')
    .map(dir => `${dir}/${name}`)
    .find(path => path.startsWith('/') && look(path) === 'runs')
  return {
    ok: false,
    exitCode: EXIT.notFound,
    what: `${name} is not found in the sandbox`,
    hint:
      elsewhere === undefined || name.includes('/')
        ? 'check the spelling; `pen plan` shows what the sandbox sees'
        : `the host has it at ${elsewhere}, which this policy does not show: use --profile dev, or --read its directory and --env PATH`,
  }
}

/** The kernel says "no such file" of a script whose interpreter is missing; we say which file. */
function withInterpreter(name: string, path: string, plan: Plan): Found {
  const host = toHost(path, plan)
  const head = host === undefined ? undefined : readProgramHead(host)
  if (head?.kind !== 'script') return { ok: true }
  const state = lookInside(normalize(head.interpreter), plan)
  if (state === 'runs' || state === 'unknown') return { ok: true }
  return {
    ok: false,
    exitCode: EXIT.notExecutable,
    what: `${name} cannot be executed: its interpreter ${head.interpreter} is ${state === 'absent' ? 'not found' : 'not executable'} in the sandbox`,
    hint: 'correct the first line of the script, or run its interpreter by name',
  }
}

type Look = 'runs' | 'refused' | 'absent'

/** Private directories are empty at the start; what the engine itself puts into `/dev` and `/proc` is not known here. */
function lookInside(path: string, plan: Plan): Look | 'unknown' {
  const host = toHost(path, plan)
  if (host !== undefined) return look(host)
  if (plan.steps.some(({ op, at }) => (op === 'devices' || op === 'processes') && isWithin(path, at)))
    return 'unknown'
  return plan.steps.some(({ at }) => isWithin(at, path)) ? 'refused' : 'absent'
}

/** Whether the tool policy took a program away that the host has there. */
function takenAway(path: string, plan: Plan): Taken | undefined {
  const shells = plan.steps.flatMap(step =>
    step.op === 'cover' && step.why === 'tools.shell' ? [step.at] : [],
  )
  const directories = plan.steps.flatMap(step => (step.op === 'seal' ? [step.at] : []))
  if (shells.length === 0 && directories.length <= 2) return undefined
  const real = realOf(path)
  if (real === undefined || look(real) !== 'runs') return undefined
  if (shells.some(shell => shell === real)) return 'no shell'
  const shown = plan.steps.some(step => (step.op === 'bind' || step.op === 'link') && step.at === real)
  const listing = directories.some(at => at !== '/' && at !== '/dev' && isWithin(real, at))
  return listing && !shown ? 'not listed' : undefined
}

/** Programs of the system stand at the same place on the host. */
function realOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

function look(path: string): Look {
  try {
    if (!statSync(path).isFile()) return 'refused'
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

/** The host's path behind a path inside, by the mounts of the plan; undefined when no mount shows it. */
function toHost(path: string, plan: Plan): string | undefined {
  // Without mounts the files are the host's own.
  if (plan.steps.length === 0) return path
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
  return best?.from === undefined ? undefined : best.from + path.slice(best.at.length)
}
