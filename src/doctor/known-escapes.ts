/**
 * Known sandbox escapes of these programs, and the fixed versions. This is a small dated table of important updates, not
 * a scanner. Distributions may fix a version without changing its number.
 */
import { type EngineName, findEngine } from '../backend/container/engine/engine.ts'
import { engineFacts } from '../backend/container/engine/engine-facts.ts'
import { runtimeFor } from '../backend/container/engine/runtimes.ts'
import { findTool } from '../base/find-tool.ts'
import { askVersion, compareVersions, findVersion } from './version.ts'

export const TABLE_DATE = '2026-11-15'

export interface KnownEscape {
  readonly program: 'bwrap' | 'runc' | 'crun' | 'podman' | 'docker'
  readonly cve: string
  readonly about: string
  /** The first fixed version of each release line, oldest first. Later lines never had the vulnerability. */
  readonly fixed: readonly string[]
  /** Applies only if the program is setuid root. */
  readonly ifSetuid?: boolean
}

export const KNOWN_ESCAPES: readonly KnownEscape[] = [
  {
    program: 'bwrap',
    cve: 'CVE-2020-5291',
    about: 'a setuid bwrap gives root to a local user',
    fixed: ['0.4.1'],
    ifSetuid: true,
  },
  {
    program: 'runc',
    cve: 'CVE-2024-21626',
    about: 'a leaked descriptor gives access to host files',
    fixed: ['1.1.12'],
  },
  {
    program: 'runc',
    cve: 'CVE-2025-31133, CVE-2025-52565, CVE-2025-52881',
    about: 'mounts over /dev and /proc can be redirected to host files',
    fixed: ['1.2.8', '1.3.3'],
  },
  {
    program: 'crun',
    cve: 'CVE-2019-18837',
    about: 'a link in an image gives access to host files',
    fixed: ['0.10.5'],
  },
  {
    program: 'crun',
    cve: 'CVE-2025-24965',
    about: 'as krun, a link in an image can change host files',
    fixed: ['1.20'],
  },
  {
    program: 'podman',
    cve: 'CVE-2024-1753',
    about: "a build can mount the host's root directory",
    fixed: ['4.9.4', '5.0.1'],
  },
  {
    program: 'podman',
    cve: 'CVE-2026-55686',
    about: "a link in an image's working directory can change host files",
    fixed: ['5.7.1'],
  },
  {
    program: 'docker',
    cve: 'CVE-2024-23651, CVE-2024-23652, CVE-2024-23653',
    about: 'a build can read and delete host files',
    fixed: ['24.0.9', '25.0.2'],
  },
]

/** The escapes of one version. */
export function escapesOf(program: string, version: string, isSetuid = false): KnownEscape[] {
  return KNOWN_ESCAPES.filter(
    known =>
      known.program === program && (known.ifSetuid !== true || isSetuid) && !isFixed(version, known.fixed),
  )
}

/** For `pen status`. An engine that does not answer is no risk, because no container runs on it. */
export async function engineRisks(
  name: EngineName,
  isolation: string,
  cacheDir: string,
): Promise<readonly string[]> {
  try {
    const engine = findEngine(name)
    if (engine === undefined) return []
    const facts = await engineFacts(engine, cacheDir)
    const runtime = runtimeFor(isolation, facts, cacheDir)
    const program = findTool(runtime)
    return riskOf([
      { name, version: findVersion(facts.version) },
      { name: runtime, version: program === undefined ? undefined : await askVersion(program) },
    ])
  } catch {
    return []
  }
}

/** One line per vulnerable program. */
export const riskOf = (
  programs: readonly { readonly name: string; readonly version: string | undefined }[],
): string[] =>
  programs.flatMap(({ name, version }) => {
    const escapes = version === undefined ? [] : escapesOf(name, version)
    return escapes.length === 0 ? [] : [`${name} ${version}: ${describeEscapes(escapes)}`]
  })

function isFixed(version: string, fixedVersions: readonly string[]): boolean {
  const last = fixedVersions.at(-1)
  if (last === undefined || compareVersions(version, last) >= 0) return true
  // An older release line with its own fix has the same first two numbers and at least the third.
  const lineOf = (one: string): string => one.split('.', 2).join('.')
  return fixedVersions.some(
    fixed => lineOf(fixed) === lineOf(version) && compareVersions(version, fixed) >= 0,
  )
}

export const describeEscapes = (escapes: readonly KnownEscape[]): string =>
  escapes.map(({ cve, about, fixed }) => `${cve}: ${about} (fixed in ${fixed.join(' and ')})`).join('; ')
