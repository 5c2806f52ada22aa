/**
 * Which of the system's programs are visible. A tools list covers every program directory and restores only the listed
 * programs, each at its own path, so that a program finds its libraries. Without `tools.shell` every shell is covered.
 */
import type { Bytes } from '../base/quantity.ts'
import { type GuestPath, type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { FoundTool, HostFacts } from './facts.ts'
import type { Step } from './plan.ts'
import { SETSID_PATH } from './system-view.ts'

export interface ToolView {
  /** Steps that come after the system's mounts and before the grants. */
  readonly steps: readonly Step[]
  /** Steps that need `/run`, so they come last. */
  readonly late: readonly (Step & { readonly op: 'bind' })[]
  /** What may execute, with everything beneath, when `tools.exec` is "listed". */
  readonly executable: readonly GuestPath[]
  readonly notes: readonly string[]
}

export function viewTools(
  { tools }: Pick<Policy, 'tools'>,
  facts: Pick<HostFacts, 'system' | 'tools'>,
): ToolView {
  const shells = tools.shell ? [] : facts.tools.shells.map(path => cover(path, 'tools.shell'))
  if (tools.allow === 'shown')
    return { steps: shells, late: [], executable: facts.system.filter(isProgramTree).map(guest), notes: [] }
  const shown = facts.tools.found.filter(tool => tools.shell || !tool.shell)
  const strays = facts.tools.strays.filter(
    path => !facts.tools.shells.includes(path) && !shown.some(tool => tool.file === path),
  )
  const single = [...shells, ...[...new Set(strays)].map(path => cover(path, 'tools.allow'))]
  return {
    steps: [
      ...facts.tools.directories.flatMap(directory => fill(directory, shown)),
      ...single.filter(({ at }) => !facts.tools.directories.some(directory => isWithin(at, directory))),
    ],
    late: facts.tools.setsid === undefined ? [] : [bind(facts.tools.setsid, SETSID_PATH)],
    executable: [
      ...new Set([
        ...shown.flatMap(tool => [tool.file, ...tool.companions]),
        ...(facts.tools.setsid === undefined ? [] : [SETSID_PATH]),
      ]),
    ] as GuestPath[],
    notes: notesOn(tools, facts, shown),
  }
}

const isProgramTree = (entry: HostFacts['system'][number]): boolean =>
  entry.kind === 'tree' && !entry.path.startsWith('/etc/')

const guest = ({ path }: HostFacts['system'][number]): GuestPath => path as string as GuestPath

const cover = (path: string, why: 'tools.shell' | 'tools.allow') =>
  ({ op: 'cover', at: path as GuestPath, kind: 'file', why }) as const

const bind = (from: string, at = from) =>
  ({ op: 'bind', from: from as HostPath, at: at as GuestPath, mode: 'ro', why: 'system' }) as const

/** Room for placeholders and links. The directory stays readable when empty, so that a PATH lookup continues. */
const PLACEHOLDERS = 262_144 as Bytes

function fill(directory: string, shown: readonly FoundTool[]): Step[] {
  const at = directory as GuestPath
  const inside = (path: string) => path.slice(0, path.lastIndexOf('/')) === directory
  const steps = new Map<string, Step>()
  for (const tool of shown) {
    for (const link of tool.links)
      if (inside(link.at)) steps.set(link.at, { op: 'link', at: link.at as GuestPath, to: link.to })
    if (inside(tool.file)) steps.set(tool.file, bind(tool.file))
  }
  return [{ op: 'tmpfs', at, size: PLACEHOLDERS, mode: 0o755 }, ...[...steps.values()], { op: 'seal', at }]
}

function notesOn(
  tools: Policy['tools'],
  facts: Pick<HostFacts, 'system' | 'tools'>,
  shown: readonly FoundTool[],
): string[] {
  const visible = (path: string) =>
    facts.system.some(entry => entry.kind === 'tree' && isWithin(path, entry.path))
  const names = new Set(shown.map(tool => tool.name))
  return [
    ...facts.tools.missing.map(name => `tools.allow lists ${name}, which the system does not have`),
    ...facts.tools.found
      .filter(tool => tool.shell && !tools.shell && !tool.implied)
      .map(tool => `tools.allow lists ${tool.name}, but it is a shell and tools.shell is false`),
    ...shown.flatMap(({ name, needs }) =>
      needs === undefined || names.has(needs) ? [] : [`${name} needs ${needs}: list it too`],
    ),
    ...shown
      .filter(tool => !visible(tool.file))
      .map(tool => `${tool.name} leads to ${tool.file}, which this policy does not show`),
  ]
}
