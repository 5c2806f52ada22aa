import type { Place } from '../base/error.ts'

/** Where a part of the policy came from, so that every verdict can name the deciding line. */
export interface Source {
  /** The layer's name: `profile coding`, `live config`, `command line`, `agent-permissions.json`. */
  readonly layer: string
  readonly place: Place | undefined
  /** More for a person: the reason of a group, the spelling of a flag. */
  readonly note?: string
  /** Set for a rule that expires. */
  readonly temporary?: {
    /** Expiry, in milliseconds since 1970. */
    readonly until: number | undefined
    /** For a rule that allows one connection: the id by which that connection claims the rule. */
    readonly once: string | undefined
  }
}

/** A rule and its source. */
export interface Sourced<T> {
  readonly rule: T
  readonly source: Source
}

/** A single value and its source. */
export interface Setting<T> {
  readonly value: T
  readonly source: Source
}

/** The result of a parser that does not know the place of its text. The caller adds the place. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | Refusal

export interface Refusal {
  readonly ok: false
  readonly why: string
  readonly fix?: string
}

export const refuse = (why: string, fix?: string): Refusal =>
  fix === undefined ? { ok: false, why } : { ok: false, why, fix }

/** The layer that protects pen's own files: see config/protect-pen.ts. */
export const PEN_ITSELF = 'pen itself'

/** True for a source that may grant and is not built in: the user's own config or flags. */
export const isFromUser = (source: Source | undefined): boolean =>
  source !== undefined &&
  !source.layer.startsWith('profile ') &&
  !['default', PEN_ITSELF, 'agent-permissions.json'].includes(source.layer)

export function showSource(source: Source): string {
  const where = source.place === undefined ? '' : ` (${source.place.file}:${source.place.line})`
  return `${source.layer}${where}`
}
