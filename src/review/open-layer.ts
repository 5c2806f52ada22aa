/** Opens the review layer of a sandbox for one run, or makes a new one. On the launch path of `--review` only. */
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { mountLayerFirst } from '../backend/process/layer-mount.ts'
import { ENTER } from '../base/beneath/beneath.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { recall, remember } from '../base/fact-cache.ts'
import { findTool, missingTool } from '../base/find-tool.ts'
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
import { mountsHere } from '../base/mount-table.ts'
import { printable } from '../base/printable.ts'
import { removeIfEmpty } from '../base/remove-if-empty.ts'
import type { Lock } from '../config/lock.ts'
import type { Plan } from '../plan/plan.ts'
import { type HostPath, isWithin } from '../policy/files/path.ts'
import { mountableSteps } from './check-mounts.ts'
import {
  copyOwner,
  finishLayer,
  hasChanges,
  type LayerKind,
  layerPaths,
  lockLayer,
  makeLayer,
  readLayer,
  renewWork,
} from './layer.ts'

export interface OpenedLayer {
  /** Held until the sandbox has ended. */
  readonly lock: Lock
  readonly plan: Plan
  /** After the sandbox has ended. */
  close(): void
}

interface LayerOptions {
  readonly stateDir: string
  readonly cacheDir: string
  /** The host's git directory of the project, and where its HEAD is in it. */
  readonly git: { readonly dir: string; readonly record: string } | undefined
  readonly tell: (line: string) => void
}

const MOUNT_MS = 10_000
/** A copy of a large project without reflinks. */
const COPY_MS = 3_600_000

export async function openLayer(plan: Plan, options: LayerOptions): Promise<OpenedLayer> {
  const { stateDir } = options
  const { dir, rollback } = layerPaths(stateDir)
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const lock = await lockLayer(stateDir)
  try {
    if (existsSync(rollback)) (await import('./checkpoint/rollback.ts')).finishRollback(stateDir)
    const kind = hasChanges(stateDir) ? readLayer(stateDir)?.kind : undefined
    const layer = { dir: dir as HostPath, kind: kind ?? (await newLayer(plan, options)) }
    holdTop(layer.kind, plan.workspace, options)
    const inProject = plan.makeDirectories.filter(path => isWithin(path, plan.workspace))
    const made = inProject.flatMap(path => makeInLayer(layer.kind, path, plan.workspace, stateDir))
    if (layer.kind === 'overlay') renewWork(stateDir)
    const close = (): void => {
      for (const path of made.reverse()) removeIfEmpty(path)
      lock.release()
    }
    return { lock, close, plan: { ...plan, layer, steps: mountableSteps(plan, layer) } }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function newLayer(plan: Plan, options: LayerOptions): Promise<LayerKind> {
  const { stateDir, git, tell } = options
  const { workspace } = plan
  const made = Date.now()
  makeLayer(stateDir, workspace)
  const refused = await whyNoOverlay(plan, options)
  const kind = refused === undefined ? 'overlay' : 'copy'
  if (refused !== undefined) {
    tell(
      `review: this run gets a copy of the project, because an overlay cannot be mounted here (${refused})`,
    )
    await copyProject(workspace, stateDir)
  }
  finishLayer(stateDir, { workspace, kind, made, base: git === undefined ? null : headOf(git) })
  return kind
}

/** Tries it. Only success is remembered: it holds until the kernel or a file system changes. */
async function whyNoOverlay(plan: Plan, { stateDir, cacheDir }: LayerOptions): Promise<string | undefined> {
  const { dir } = layerPaths(stateDir)
  const cache = `${cacheDir}/review-overlay`
  const { workspace } = plan
  const devices = [dir, workspace].map(path => statSync(path).dev)
  const below = mountsHere().flatMap(({ point }) => (isWithin(point, workspace) ? [point] : []))
  const key = [kernelRelease(), process.geteuid?.(), ...devices, ...below].join(' ')
  if (recall<boolean>(cache, key)) return undefined
  const words = mountLayerFirst({ dir: dir as HostPath, kind: 'overlay' })
  const { capture } = await import('../base/spawn.ts')
  const { code, stderr } = await capture([...words, '/bin/true'], { env: {}, timeoutMs: MOUNT_MS })
  if (code !== 0) return printable(stderr.trim().split('\n')[0] ?? '', 300) || `exit ${code}`
  remember(cache, key, true)
  return undefined
}

async function copyProject(workspace: string, stateDir: string): Promise<void> {
  const cp = findTool('cp')
  if (cp === undefined) throw missingTool('cp', 'install coreutils')
  const { merged } = layerPaths(stateDir)
  const words = [cp, '-a', '--reflink=auto', '--', `${workspace}/.`, merged]
  const { capture } = await import('../base/spawn.ts')
  const { code, stderr } = await capture(words, { env: {}, timeoutMs: COPY_MS })
  if (code === 0) return
  throw new PenError('STATE', {
    what: `the project could not be copied for a review (${printable(stderr.trim().split('\n')[0] ?? '', 300)})`,
    at: workspace,
    hint: 'make room on the disk of ~/.pen, or run without --review',
  })
}

/** The sandbox before may have locked the top of the project (`chmod 000 .`): no command could start there. */
function holdTop(kind: LayerKind, workspace: string, { stateDir, tell }: LayerOptions): void {
  const top = topOf(kind, stateDir)
  if ((lstatSync(top).mode & ENTER) !== 0) return
  copyOwner(workspace, top)
  tell(
    'review: the sandbox had locked the top directory of the project; it has the mode of your project again',
  )
}

const topOf = (kind: LayerKind, stateDir: string): string => {
  const { upper, merged } = layerPaths(stateDir)
  return kind === 'overlay' ? upper : merged
}

/**
 * A directory that the policy grants and the project does not have. Directories above it keep the project's mode. Returns what it made,
 * parents first.
 */
function makeInLayer(kind: LayerKind, path: string, workspace: string, stateDir: string): string[] {
  const top = topOf(kind, stateDir)
  const made: string[] = []
  let below = ''
  for (const name of path.slice(workspace.length + 1).split('/')) {
    below += `/${name}`
    const there = lookAt(`${top}${below}`)
    // The check of all mounts says what is wrong.
    if (there?.isDirectory() === false) break
    if (there !== undefined) continue
    mkdirSync(`${top}${below}`, { mode: 0o700 })
    const isThere = lstatSync(`${workspace}${below}`, { throwIfNoEntry: false })?.isDirectory() === true
    copyOwner(isThere ? `${workspace}${below}` : workspace, `${top}${below}`)
    made.push(`${top}${below}`)
  }
  return made
}

/** The commit of HEAD, read without git. Null where it has none, or keeps its refs in another format. */
function headOf({ dir, record }: { readonly dir: string; readonly record: string }): string | null {
  const ID = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
  const read = (path: string): string => {
    try {
      return readFileSync(`${dir}/${path}`, 'utf8')
    } catch {
      return ''
    }
  }
  const head = read(`${record}/HEAD`).trim()
  const ref = /^ref: (refs\/heads\/.+)$/.exec(head)?.[1]
  const packed = (name: string): string | undefined =>
    read('packed-refs')
      .split('\n')
      .find(line => line.endsWith(` ${name}`))
      ?.split(' ')[0]
  const id = ref === undefined ? head : read(ref).trim() || (packed(ref) ?? '')
  return ID.test(id) ? id : null
}
