/**
 * What accept is about to do, in the layer's directory, so that a killed accept is finished or undone. A line is on the disk
 * before its step begins. A line that was not finished belongs to a step that did not begin.
 */
import { closeSync, constants, existsSync, fsyncSync, openSync, readFileSync, rmSync } from 'node:fs'
import { writeAll } from '../base/write-all.ts'
import type { Known } from './entry.ts'

/** One name that is staged beside its place, or moved away from it. */
export interface Step {
  readonly path: string
  /** The name beside it. */
  readonly beside: string
  /** What the user was shown there. */
  readonly before: Known | null
}

/** Of the last batch. */
export interface Unfinished {
  readonly steps: readonly Step[]
  /** The inodes that pen staged, by name. Empty while they were being written: nothing was exchanged then. */
  readonly staged: Readonly<Record<string, bigint>> | undefined
}

type Line =
  | { readonly op: 'stage'; readonly steps: readonly Step[] }
  | { readonly op: 'place'; readonly staged: Readonly<Record<string, bigint>> }
  | { readonly op: 'done' }

export const journalFile = (layer: string): string => `${layer}/journal`

export class Journal {
  readonly #file: string
  #fd: number | undefined

  constructor(layer: string) {
    this.#file = journalFile(layer)
  }

  stage(steps: readonly Step[]): void {
    this.#write({ op: 'stage', steps })
  }

  place(staged: Readonly<Record<string, bigint>>): void {
    this.#write({ op: 'place', staged })
  }

  done(): void {
    this.#write({ op: 'done' }, false)
  }

  #write(line: Line, durable = true): void {
    const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants
    this.#fd ??= openSync(this.#file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
    writeAll(this.#fd, `${JSON.stringify(line, asText)}\n`)
    if (durable) fsyncSync(this.#fd)
  }

  /** Everything in it is done. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    rmSync(this.#file, { force: true })
  }
}

/** JSON has no large integers. */
const asText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)

/** By its key: a path may look like a number, too. Names of staged files begin with a dot. */
const asValue = (key: string, value: unknown): unknown =>
  typeof value === 'string' && (key === 'ino' || key === 'mtimeNs' || key.startsWith('.pen-'))
    ? BigInt(value)
    : value

/** Undefined when nothing was interrupted. */
export function readUnfinished(layer: string): Unfinished | undefined {
  const file = journalFile(layer)
  if (!existsSync(file)) return undefined
  let unfinished: Unfinished | undefined
  for (const text of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const line = JSON.parse(text, asValue) as Line
    if (line.op === 'stage') unfinished = { steps: line.steps, staged: undefined }
    else if (line.op === 'done') unfinished = undefined
    else if (unfinished !== undefined) unfinished = { ...unfinished, staged: line.staged }
  }
  return unfinished
}
