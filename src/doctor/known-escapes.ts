/**
 * Holes by which programs have left a sandbox of these engines, and the versions without them. A small table with a date,
 * not a scanner: it says which updates must not be missed. Distributions bring fixes without a new number.
 */
import { compareVersions, parseVersion } from './version.ts'

export const TABLE_DATE = '2026-11-15'

export interface KnownEscape {
  readonly program: 'bwrap' | 'runc' | 'crun' | 'podman' | 'docker'
  readonly cve: string
  readonly about: string
  /** The first version without it in each line that was mended, oldest first; later lines never had it. */
  readonly mended: readonly string[]
  /** Only where the program is installed setuid root. */
  readonly ifSetuid?: boolean
}

export const KNOWN_ESCAPES: readonly KnownEscape[] = [
  {
    program: 'bwrap',
    cve: 'CVE-2020-5291',
    about: 'a setuid bwrap gives a user of the machine root',
    mended: ['0.4.1'],
    ifSetuid: true,
  },
  {
    program: 'runc',
    cve: 'CVE-2024-21626',
    about: 'a leaked descriptor leads to the files of the host',
    mended: ['1.1.12'],
  },
  {
    program: 'runc',
    cve: 'CVE-2025-31133, CVE-2025-52565, CVE-2025-52881',
    about: 'mounts over /dev and /proc can be led to files of the host',
    mended: ['1.2.8', '1.3.3'],
  },
  {
    program: 'crun',
    cve: 'CVE-2019-18837',
    about: 'a link in an image leads to files of the host',
    mended: ['0.10.5'],
  },
  {
    program: 'crun',
    cve: 'CVE-2025-24965',
    about: 'as krun, a link in an image changes files of the host',
    mended: ['1.20'],
  },
  {
    program: 'podman',
    cve: 'CVE-2024-1753',
    about: 'a build can mount the root of the host',
    mended: ['4.9.4', '5.0.1'],
  },
  {
    program: 'podman',
    cve: 'CVE-2026-55686',
    about: 'a link in an image’s working directory changes files of the host',
    mended: ['5.7.1'],
  },
  {
    program: 'docker',
    cve: 'CVE-2024-23651, CVE-2024-23652, CVE-2024-23653',
    about: 'a build can read and remove files of the host',
    mended: ['24.0.9', '25.0.2'],
  },
]

/** Those that a version has. */
export function escapesOf(program: string, version: string, isSetuid = false): KnownEscape[] {
  return KNOWN_ESCAPES.filter(
    known =>
      known.program === program && (known.ifSetuid !== true || isSetuid) && !isMended(version, known.mended),
  )
}

/** What is known against the programs that a container stands on, one line each: for `pen status`. */
export const riskOf = (programs: readonly { readonly name: string; readonly version: string }[]): string[] =>
  programs.flatMap(({ name, version }) => {
    const escapes = version === '' ? [] : escapesOf(name, version)
    return escapes.length === 0 ? [] : [`${name} ${version}: ${describeEscapes(escapes)}`]
  })

function isMended(text: string, mended: readonly string[]): boolean {
  const version = parseVersion(text)
  const last = mended.at(-1)
  if (last === undefined || compareVersions(version, parseVersion(last)) >= 0) return true
  // An older line that was mended on its own: the same first two numbers, and at least the third.
  return mended.some(one => {
    const fixed = parseVersion(one)
    return version[0] === fixed[0] && version[1] === fixed[1] && compareVersions(version, fixed) >= 0
  })
}

export const describeEscapes = (escapes: readonly KnownEscape[]): string =>
  escapes.map(({ cve, about, mended }) => `${cve}: ${about} (mended in ${mended.join(' and ')})`).join('; ')
