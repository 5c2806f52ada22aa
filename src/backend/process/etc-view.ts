/**
 * The sandbox's `/etc`: a copy of the few files that programs read there, in pen's cache. One mount shows it; forty
 * single mounts would take longer than the rest of the start. The copy is made again when a source changes. Only
 * world-readable files are copied, also when root runs pen.
 */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { errnoOf, errnoText, PenError } from '../../base/error.ts'
import { dirname } from '../../base/posix-path.ts'
import { sha256 } from '../../base/sha256.ts'
import type { Step } from '../../plan/plan.ts'
import { EMPTY_FILE } from '../../protocol/guest-paths.ts'

export type BindStep = Extract<Step, { op: 'bind' }>
export type EtcStep = Extract<Step, { op: 'bind' | 'file' | 'link' }>

/** True when a step is part of the view: pen's own files and the system's read-only configuration. */
export function isEtcStep(step: Step): step is EtcStep {
  if (step.op === 'file' || step.op === 'link') return step.at.startsWith('/etc/')
  return step.op === 'bind' && step.at.startsWith('/etc/') && step.why === 'system'
}

/**
 * Returns the directory to mount at `/etc`, and makes it when needed. The view is read-only inside, so it gets a mount
 * point for each of `grants`.
 */
export function etcView(
  steps: readonly EtcStep[],
  cacheDir: string,
  grants: readonly BindStep[] = [],
): string {
  const stands = grants.map(({ from, at }) => ({ at, directory: lstatSync(from).isDirectory() }))
  const signature = [
    EMPTY_FILE,
    ...steps.map(sign),
    ...stands.map(({ at, directory }) => `stand ${at} ${directory}`),
  ].join('\n')
  const view = `${cacheDir}/etc/${sha256(signature).slice(0, 32)}`
  try {
    if (!lstatSync(view, { throwIfNoEntry: false })?.isDirectory()) return makeView(steps, stands, view)
    // Mark the view as in use: see LONGER_THAN_ANY_RUN.
    utimesSync(view, new Date(), new Date())
    return view
  } catch (error) {
    if (error instanceof PenError) throw error
    throw new PenError('STATE', {
      what: `pen could not prepare its copy of /etc (${errnoText(error)})`,
      at: view,
      hint: 'check that your home directory is writable and not full',
      cause: error,
    })
  }
}

/** A key of what a step shows. It changes when the source changes. */
function sign(step: EtcStep): string {
  if (step.op === 'file') return `file ${step.at} ${step.text}`
  if (step.op === 'link') return `link ${step.at} ${step.to}`
  const stat = lstatSync(step.from, { throwIfNoEntry: false, bigint: true })
  return `bind ${step.at} ${stat === undefined ? '-' : `${stat.dev} ${stat.ino} ${stat.mtimeNs} ${stat.ctimeNs}`}`
}

interface Stand {
  readonly at: string
  readonly directory: boolean
}

function makeView(steps: readonly EtcStep[], stands: readonly Stand[], view: string): string {
  mkdirSync(dirname(view), { recursive: true, mode: 0o700 })
  const draft = mkdtempSync(`${dirname(view)}/draft-`)
  try {
    fill(draft, steps, stands)
  } catch (error) {
    // Remove the draft. On a full disk each retry would leave another one.
    rmSync(draft, { recursive: true, force: true })
    throw error
  }
  try {
    renameSync(draft, view)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    // Another pen made the same view at the same time.
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error
  }
  forgetOthers(view)
  return view
}

function fill(draft: string, steps: readonly EtcStep[], stands: readonly Stand[]): void {
  chmodSync(draft, 0o755)
  // Live mounts cover denied files with this file. The sandbox has it from the start.
  writeFileSync(draft + EMPTY_FILE.slice('/etc'.length), '', { mode: 0o000 })
  for (const step of steps) {
    const at = draft + step.at.slice('/etc'.length)
    mkdirSync(dirname(at), { recursive: true, mode: 0o755 })
    if (step.op === 'file') writeFileSync(at, step.text, { mode: 0o644 })
    else if (step.op === 'link') symlinkSync(step.to, at)
    else {
      // A link that an earlier step copied leads to the host's own files.
      if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() !== true) rmSync(at, { force: true })
      copyReadable(step.from, at)
    }
  }
  for (const stand of stands) makeStand(draft, stand)
}

/** Walks component by component: a copied link would lead to the host's own files. */
function makeStand(draft: string, { at, directory }: Stand): void {
  const names = at.slice('/etc/'.length).split('/')
  let path = draft
  for (const [i, name] of names.entries()) {
    path += `/${name}`
    const there = lstatSync(path, { throwIfNoEntry: false })
    const isLast = i === names.length - 1
    if (there === undefined && isLast && !directory) writeFileSync(path, '', { mode: 0o644 })
    else if (there === undefined) mkdirSync(path, { mode: 0o755 })
    else if (there.isSymbolicLink() || there.isDirectory() === (isLast && !directory))
      throw new PenError('MOUNT_SOURCE', {
        what: `cannot mount at ${at}: the sandbox’s /etc/${names.slice(0, i + 1).join('/')} is of another kind`,
        hint: 'mount it at another path',
      })
  }
}

/**
 * The system's files are trusted, so all of them are copied, without a limit. A link is copied as a link, and inside it
 * resolves to the sandbox's files.
 */
function copyReadable(from: string, to: string): void {
  const stat = lstatSync(from, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from), to)
  else if (stat.isDirectory() && (stat.mode & 0o005) === 0o005) {
    mkdirSync(to, { recursive: true, mode: 0o755 })
    for (const name of readdirSync(from)) copyReadable(`${from}/${name}`, `${to}/${name}`)
  } else if (stat.isFile() && (stat.mode & 0o004) !== 0) {
    copyFileSync(from, to, constants.COPYFILE_FICLONE)
    chmodSync(to, stat.mode & 0o111 ? 0o755 : 0o644)
  }
}

/** Longer than any run, so no sandbox has such an old view mounted. Making a copy takes less than a minute. */
const LONGER_THAN_ANY_RUN = 30 * 24 * 3_600_000
const LONGER_THAN_ANY_COPY = 60_000

function forgetOthers(view: string): void {
  const dir = dirname(view)
  for (const name of readdirSync(dir)) {
    const path = `${dir}/${name}`
    const made = lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    const life = name.startsWith('draft-') ? LONGER_THAN_ANY_COPY : LONGER_THAN_ANY_RUN
    if (path !== view && Date.now() - made > life) rmSync(path, { recursive: true, force: true })
  }
}
