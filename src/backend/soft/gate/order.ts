/** What pen tells the supervisor of a command, and what it hears from it. Both are pen: the pipe between them is nobody else's. */

export interface ProcessLimits {
  readonly files: number
  /** Seconds of one process. */
  readonly cpu: number
  /** Bytes of one file. */
  readonly fileSize: number
  /** Of the user, all together; undefined where they cannot be counted. */
  readonly processes: number | undefined
}

export interface SuperviseOrder {
  readonly file: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Record<string, string>
  readonly limits: ProcessLimits
  /** One for each cgroup to join; their files are open from `FIRST_JOIN` on. */
  readonly joins: readonly number[]
}

export type SuperviseReport =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'not-started'; readonly errno: string }
  | {
      readonly kind: 'ended'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      /** Seen, and not ended within the time. */
      readonly survivors: number
    }

/** Undefined when pen was not who wrote it: then nothing is started. */
export function parseOrder(line: string): SuperviseOrder | undefined {
  try {
    const order = JSON.parse(line) as SuperviseOrder
    return typeof order.file === 'string' && Array.isArray(order.argv) ? order : undefined
  } catch {
    return undefined
  }
}

/** A program of the same user could write into the pipe by /proc: what it says is read, and believed no further than this. */
export function parseReport(line: string): SuperviseReport | undefined {
  try {
    const said = JSON.parse(line) as Partial<Record<string, unknown>>
    const number = (key: string): number => {
      const value = said[key]
      return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
    }
    if (said['kind'] === 'started')
      return number('pid') > 1 ? { kind: 'started', pid: number('pid') } : undefined
    if (said['kind'] === 'not-started')
      return { kind: 'not-started', errno: String(said['errno']).slice(0, 20) }
    if (said['kind'] !== 'ended') return undefined
    const signal = said['signal']
    return {
      kind: 'ended',
      code: typeof said['code'] === 'number' ? number('code') & 255 : null,
      signal: typeof signal === 'string' && /^SIG[A-Z0-9]+$/.test(signal) ? (signal as NodeJS.Signals) : null,
      survivors: number('survivors'),
    }
  } catch {
    return undefined
  }
}
