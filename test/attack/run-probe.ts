/**
 * Compiles probe.c and judges its report. The caller puts the program into a sandbox, so that one set of probes
 * serves the bare filter, every backend of pen, and the unprotected twin.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Which layer must give the safe answer: the filter, bubblewrap's flags too, or only all of pen. */
export type Layer = 'filter' | 'bwrap' | 'pen'

export interface Probe {
  readonly id: string
  readonly what: string
  /** Safe outcomes, separated by blanks: `ok`, an errno, or a signal. */
  readonly want: string
  readonly layer: Layer
  readonly outcome: string
}

/** Runs the program at this path inside a sandbox and returns its standard output. */
export type Launch = (program: string) => string

export const isSafe = (probe: Probe): boolean => probe.want.split(' ').includes(probe.outcome)
/** A twin must work. Every other probe must fail safely. */
export const isTwin = (probe: Probe): boolean => probe.id.startsWith('A')
export const describeProbe = (probe: Probe): string => `${probe.id} (${probe.what}): ${probe.outcome}`

/** In a directory that other users can read: several users run the same program. */
export function compileProbe(): { readonly program: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'pen-attack-'))
  chmodSync(folder, 0o755)
  const program = join(folder, 'probe')
  const source = join(import.meta.dir, 'probe.c')
  const { status, stderr } = spawnSync('cc', ['-O1', '-static', '-o', program, source], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`cc: ${stderr}`)
  return { program, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export function runProbe(program: string, launch: Launch): readonly Probe[] {
  const lines = launch(program).trim().split('\n')
  const probes = lines.map(line => JSON.parse(line) as Probe)
  // A program that was cut short must not look like one that found nothing.
  if (probes.at(-1)?.id !== 'A12-badfd') throw new Error(`the probes ended early, after ${probes.at(-1)?.id}`)
  return probes
}
