import type { Place } from '../base/error.ts'

/** Where a part of the policy came from, so that every verdict can name the line that decided it. */
export interface Source {
  /** The layer in words: `profile coding`, `live config`, `command line`, `agent-permissions.json`. */
  readonly layer: string
  readonly place: Place | undefined
  /** What a person should know besides: a group's reason, a flag's spelling. */
  readonly note?: string
  /** For what ends by itself. */
  readonly temporary?: {
    /** Milliseconds since 1970 from which it counts no more. */
    readonly until: number | undefined
    /** Good for one connection: the id by which whoever takes it uses it up. */
    readonly once: string | undefined
  }
}

/** A rule and who asked for it. */
export interface Sourced<T> {
  readonly rule: T
  readonly source: Source
}

/** A single value and who set it. */
export interface Setting<T> {
  readonly value: T
  readonly source: Source
}

/** The answer of a parser that has no place to report: the caller adds it. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: string; readonly fix?: string }

/** The layer of what holds pen's own files: see config/protect-pen.ts. */
export const PEN_ITSELF = 'pen itself'

/** Neither built in nor the project's own: somebody who may grant has said it. */
export const isFromUser = (source: Source | undefined): boolean =>
  source !== undefined &&
  !source.layer.startsWith('profile ') &&
  !['default', PEN_ITSELF, 'agent-permissions.json'].includes(source.layer)

export function showSource(source: Source): string {
  const where = source.place === undefined ? '' : ` (${source.place.file}:${source.place.line})`
  return `${source.layer}${where}`
}
