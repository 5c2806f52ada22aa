/** config files ─▶ policy: one function reads like the pipeline. */
import { compile, type GroupRules } from '../policy/compile.ts'
import { protectLinked } from '../policy/files/linked-place.ts'
import type { PathWorld } from '../policy/files/path.ts'
import { type Merged, type MergeInput, mergeLayers } from '../policy/merge.ts'
import type { NetCeiling, Policy } from '../policy/policy.ts'
import type { NamedDocument } from '../policy/presets.ts'
import { profileLayer } from '../policy/profile.ts'
import type { Layer, Settings } from '../policy/settings.ts'
import type { GrantView } from './grants/grant-layer.ts'
import type { ResolvedGroup } from './groups.ts'
import { findHomeLinks } from './home/home-links.ts'
import { type Layers, readLayers } from './layers.ts'
import type { Project } from './project.ts'
import { protectPen } from './protect-pen.ts'

export interface LoadOptions {
  /** The command line, in the shape of a config document. */
  readonly flags: object
  /** Overrides every network grant. Not in `flags`, so that the most common flag needs no parser. */
  readonly offline: boolean
  readonly allowUserExpansion: boolean
  /** A preset that the user chose by name. It is weaker than the user's own documents. */
  readonly preset?: NamedDocument | undefined
  /**
   * The untrusted layers with which a running sandbox started. The agent may have changed its document since, so it is not read
   * again. It cannot benefit from the user's edit, nor block it.
   */
  readonly untrusted?: readonly Layer[]
  /** Which temporary grants count. By default those without a run. */
  readonly grants?: GrantView
}

export interface Loaded {
  readonly project: Project
  readonly policy: Policy
  readonly merged: Merged
  /** The layers of `agent-permissions.json` as it was read. */
  readonly untrusted: readonly Layer[]
  /** What could not be checked in the user's home, as text. */
  readonly homeWarnings: readonly string[]
}

export async function loadPolicy(project: Project, options: LoadOptions): Promise<Loaded> {
  const layers = await readLayers(project, options)
  const { base, homeWarnings } = baseLayers(project.world, layers)
  const merged = mergeLayers({
    ...layers,
    base,
    workspace: project.world.workspace,
    allowUserExpansion: options.allowUserExpansion,
  })
  return {
    project,
    policy: await compileFor(
      project,
      merged.settings,
      options.allowUserExpansion ? [] : ceilingsOf(layers.untrusted),
    ),
    merged,
    untrusted: layers.untrusted,
    homeWarnings,
  }
}

/** The profile's layer, with protection for writable files to which the user's home links. */
export function baseLayers(
  world: PathWorld,
  { trusted, untrusted }: Layers,
): Pick<MergeInput, 'base'> & Pick<Loaded, 'homeWarnings'> {
  const writable = [...trusted, ...untrusted].flatMap(({ settings }) => writableIn(settings))
  const { linked, homeWarnings } = findHomeLinks(world, writable, process.env)
  const protect = protectLinked(linked, trusted, world.workspace)
  return { base: profile => profileLayer(profile, world, protect), homeWarnings }
}

/** The policy of the user's own layers, to show what a project's document restricted. */
export const ownPolicy = ({ project, merged }: Loaded): Promise<Policy> => compileFor(project, merged.own)

const compileFor = async (
  project: Project,
  settings: Settings,
  ceilings: readonly NetCeiling[] = [],
): Promise<Policy> =>
  protectPen(compile(settings, project.world.workspace, await groupRules(settings, project), ceilings))

const ceilingsOf = (untrusted: readonly Layer[]): NetCeiling[] =>
  untrusted.flatMap(({ settings }) =>
    (['http', 'tcp'] as const).flatMap(list => {
      const said = settings[`network.${list}`]
      return said === undefined ? [] : [{ list, rules: said.items.map(({ rule }) => rule) }]
    }),
  )

/** Writable paths other than the workspace. */
const writableIn = (settings: Settings): string[] => [
  ...(settings['files.write']?.items ?? []).map(({ rule }) => rule.path),
  ...(settings.mounts?.items ?? []).flatMap(({ rule }) =>
    rule.kind === 'host' && rule.mode === 'rw' ? rule.host : [],
  ),
]

export async function groupRules(settings: Settings, project: Project): Promise<GroupRules> {
  const names = new Set(settings['network.groups']?.items.map(item => item.rule) ?? [])
  const out = new Map<string, ResolvedGroup>()
  // Offline allows no host, so no package manager is asked.
  if (names.size === 0 || settings['network.offline']?.value === true) return out
  const { resolveGroup } = await import('./groups.ts')
  const { home, state, workspace } = project.world
  const writable = [workspace, `${project.stateDir}/volumes`, ...writableIn(settings)]
  for (const name of names)
    out.set(name, await resolveGroup(name, { home, writable, cacheDir: `${state}/cache` }))
  return out
}
