/** The messages between pen and the supervise process of a command. Both are pen, and no other process has the pipe. */

export interface ProcessLimits {
  readonly files: number
  /** Seconds per process. */
  readonly cpu: number
  /** Bytes per file. */
  readonly fileSize: number
  /** For the user in total. Undefined when they cannot be counted. */
  readonly processes: number | undefined
}

export interface SuperviseOrder {
  readonly file: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Record<string, string>
  readonly limits: ProcessLimits
  /** The number of cgroups to join. Their files are open from `FIRST_JOIN` on. */
  readonly joins: number
}

export type SuperviseReport =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'not-started'; readonly errno: string }
  | {
      readonly kind: 'ended'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      /** Processes that were found and did not end in time. */
      readonly survivors: number
    }

/** Undefined when pen did not write it. Nothing is started then. */
export function parseOrder(line: string): SuperviseOrder | undefined {
  try {
    const order = JSON.parse(line) as SuperviseOrder
    return typeof order.file === 'string' && Array.isArray(order.argv) ? order : undefined
  } catch {
    return undefined
  }
}

/**
 * A program of the same user could write to the pipe through /proc. So a report is checked, and only these fields are
 * used.
 */
export function parseReport(line: string): SuperviseReport | undefined {
  try {
    const report = JSON.parse(line) as Partial<Record<string, unknown>>
    const number = (key: string): number => {
      const value = report[key]
      return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
    }
    if (report['kind'] === 'started')
      return number('pid') > 1 ? { kind: 'started', pid: number('pid') } : undefined
    if (report['kind'] === 'not-started')
      return { kind: 'not-started', errno: String(report['errno']).slice(0, 20) }
    if (report['kind'] !== 'ended') return undefined
    const signal = report['signal']
    return {
      kind: 'ended',
      code: typeof report['code'] === 'number' ? number('code') & 255 : null,
      signal: typeof signal === 'string' && /^SIG[A-Z0-9]+$/.test(signal) ? (signal as NodeJS.Signals) : null,
      survivors: number('survivors'),
    }
  } catch {
    return undefined
  }
}

/** Longer than any message. */
const MAX_LINE = 16 * 2 ** 20

/** The lines of a pipe. Ends with the pipe, and at a line that is too long. */
export async function* linesOf(fd: number, most = MAX_LINE): AsyncGenerator<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of Bun.file(fd).stream()) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > most) return
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield text.slice(0, end)
      text = text.slice(end + 1)
    }
  }
}
