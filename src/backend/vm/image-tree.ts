/**
 * An image as the guest's root, in place of the host's system. The engine exports it once into pen's cache, under the
 * image's digest. Nothing of it runs on the host. Its directories are mounted read-only where a process sandbox has the
 * host's, so everything else of a plan is the same.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { printable } from '../../base/printable.ts'
import { capture } from '../../base/spawn.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { type GuestPath, type HostPath, isWithin } from '../../policy/files/path.ts'
import type { Image, StartOptions } from '../backend.ts'
import { withUser } from '../container/accounts.ts'
import { type Engine, engineError, findEngine, requireEngine, tryEngine } from '../container/engine/engine.ts'
import { SUPERVISOR_LABEL, supervisorLabel } from '../container/supervisor-label.ts'
import { restrictsTools } from '../programs/survey.ts'
import type { GuestFiles } from './guest-files.ts'

const TIMEOUT_MS = 600_000
/** The kernel's and pen's own. */
const NOT_SHOWN = ['/dev', '/proc', '/sys', '/run', '/tmp']
/** pen makes its own `/etc` of the image's files. */
const ALWAYS_SPLIT = '/etc'

/** The engine that has the image. It starts nothing. */
export const imageEngine = (): Engine =>
  requireEngine(findEngine('podman') === undefined ? 'docker' : 'podman')

/** The plan with the image's files in place of the host's. */
export async function fromImage(
  plan: Plan,
  image: Image,
  { server }: GuestFiles,
  { cacheDir, rules }: StartOptions,
): Promise<Plan> {
  if (restrictsTools(rules.policy.tools))
    throw new PenError('BACKEND', {
      what: 'a virtual machine with an image cannot hide programs of the image, as "tools" asks for',
      hint: 'use isolation "container", or leave out "image" or "tools"',
    })
  if (server[0]?.startsWith('/') === true)
    throw new PenError('BACKEND', {
      what: `virtiofsd is a program of this machine (${server[0]}), which a guest with an image does not see`,
      hint: 'use isolation "container" for the image, or leave out "image"',
    })
  return withImage(plan, await imageTree(imageEngine(), image, cacheDir), image)
}

/** The host's directory with the image's files. */
async function imageTree(engine: Engine, { id }: Image, cacheDir: string): Promise<string> {
  const all = `${cacheDir}/images`
  const tree = `${all}/${id.replace('sha256:', '')}.tree`
  if (existsSync(tree)) return tree
  const tar = findTool('tar')
  if (tar === undefined) throw missingTool('tar', 'install tar, which unpacks the image')
  mkdirSync(all, { recursive: true, mode: 0o700 })
  const work = mkdtempSync(`${all}/.tree-`)
  try {
    mkdirSync(`${work}/tree`, { mode: 0o755 })
    await exportTo(`${work}/image.tar`, engine, id)
    const words = ['--extract', '--file', `${work}/image.tar`, '--directory', `${work}/tree`]
    const safe = [
      '--no-same-owner',
      '--no-same-permissions',
      '--anchored',
      '--exclude=dev',
      '--exclude=./dev',
    ]
    const { code, stderr } = await capture([tar, ...words, ...safe], {
      env: { LC_ALL: 'C' },
      cwd: '/',
      timeoutMs: TIMEOUT_MS,
    })
    if (code !== 0)
      throw new PenError('BACKEND', {
        what: `the image could not be unpacked (${printable(stderr.trim().split('\n').at(-1) ?? '', 200)})`,
        hint: 'check that your home directory is not full',
      })
    renameSync(`${work}/tree`, tree)
    return tree
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The container is created and never started. */
async function exportTo(file: string, engine: Engine, id: string): Promise<void> {
  const labels = ['--label=pen=1', `--label=${SUPERVISOR_LABEL}=${supervisorLabel()}`]
  const words = ['create', '--network=none', '--pull=never', ...labels, id, '/nothing']
  const created = await tryEngine(engine, words)
  const container = created.stdout.trim()
  if (created.code !== 0) throw engineError(engine, created, 'IMAGE')
  try {
    const exported = await tryEngine(engine, ['export', '--output', file, container], {
      timeoutMs: TIMEOUT_MS,
    })
    if (exported.code !== 0) throw engineError(engine, exported)
  } finally {
    await tryEngine(engine, ['rm', '--force', '--volumes', container])
  }
}

/** The plan has no system, because it was made for an image. */
export function withImage(plan: Plan, tree: string, image: Image): Plan {
  const steps = plan.steps.flatMap((step, i): Step[] => {
    if (step.op !== 'file') return [step]
    if (step.at === '/etc/passwd') return [{ ...step, text: withUser(image.passwd, step.text) }]
    if (step.at === '/etc/group') return [{ ...step, text: withUser(image.group, step.text) }]
    if (isWithin(step.at, '/etc')) return [step]
    // A process sandbox has pen's own files in /etc alone.
    const to = `/etc/.pen-file-${i}` as GuestPath
    return [
      { ...step, at: to },
      { op: 'link', at: step.at, to },
    ]
  })
  const places = steps.map(({ at }) => at)
  const system = show(tree, '', places)
  const hasPath = plan.env.some(({ name }) => name === 'PATH')
  const path = { name: 'PATH', value: image.path, secret: false }
  return {
    ...plan,
    steps: [
      ...system,
      { op: 'devices', at: '/dev' as GuestPath },
      { op: 'processes', at: '/proc' as GuestPath },
      ...steps,
    ],
    env: hasPath || image.path === '' ? plan.env : [...plan.env, path],
  }
}

/** One directory of the image. Names are the image's, so they are hostile: only real directories are entered. */
function show(tree: string, below: string, places: readonly string[]): Step[] {
  return readdirSync(`${tree}${below}`).flatMap((name): Step[] => {
    const at = `${below}/${name}` as GuestPath
    const from = `${tree}${at}` as HostPath
    if (NOT_SHOWN.includes(at) || places.includes(at)) return []
    const stat = lstatSync(from)
    // pen's own mounts are made at their own paths, so no link of the image may be on the way.
    const isOnTheWay = at === ALWAYS_SPLIT || places.some(place => isWithin(place, at))
    if (stat.isSymbolicLink()) return isOnTheWay ? [] : [{ op: 'link', at, to: readlinkSync(from) }]
    if (stat.isDirectory() && (at === ALWAYS_SPLIT || places.some(place => isMissing(tree, at, place))))
      return show(tree, at, places)
    return stat.isDirectory() || stat.isFile() ? [{ op: 'bind', from, at, mode: 'ro', why: 'system' }] : []
  })
}

/** The plan mounts something in this directory, and the image has no mount point for it. */
function isMissing(tree: string, directory: string, place: string): boolean {
  if (place === directory || !isWithin(place, directory)) return false
  let path = directory
  for (const name of place.slice(directory.length + 1).split('/')) {
    path += `/${name}`
    const stat = lstatSync(`${tree}${path}`, { throwIfNoEntry: false })
    if (stat === undefined || !(stat.isDirectory() || (stat.isFile() && path === place))) return true
  }
  return false
}
