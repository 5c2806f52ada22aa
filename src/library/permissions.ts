/** What the user of this program lets a running sandbox do: the same files as `pen allow` and `pen grant` write, by the same commands. */
import { resolve } from 'node:path'
import type { KeptStatus } from '../sandbox/kept-status.ts'
import type { AuditTail } from './audit-tail.ts'
import { usage } from './exec-options.ts'
import type { PenProgram } from './pen-program.ts'
import { SandboxError } from './sandbox-error.ts'

/** One of them; without any, `session`. */
export interface AllowOptions {
  /** Until this sandbox ends. */
  readonly session?: boolean | undefined
  /** For the next connection there. */
  readonly once?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. */
  readonly for?: string | number | undefined
  /** From now on, for every sandbox of the project. */
  readonly always?: boolean | undefined
}

export interface GrantOptions {
  /** Also for writing. */
  readonly rw?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. An hour where nothing is said. */
  readonly for?: string | number | undefined
}

/** A keeper looks four times a second. */
const IN_FORCE_MS = 5000

export class Permissions {
  readonly #pen: PenProgram
  readonly #tail: AuditTail
  readonly #status: KeptStatus

  constructor(pen: PenProgram, tail: AuditTail, status: KeptStatus) {
    this.#pen = pen
    this.#tail = tail
    this.#status = status
  }

  async allow(target: string, options: AllowOptions): Promise<void> {
    if (this.#status.gateway === null)
      throw new SandboxError('STATE', {
        what: `this sandbox has no network: ${this.#status.network}`,
        hint: 'start it without offline, and with network.mode "gateway"',
      })
    if (target.startsWith('-')) throw usage(`"${target}" is no host`, 'registry.example.com:443')
    const mark = this.#tail.mark()
    await this.#pen.verb(['allow', target, ...lifeFlags(options)])
    const seen = await this.#tail.until(
      mark,
      ({ kind }) => kind === 'policy-changed' || kind === 'policy-edit-refused',
      IN_FORCE_MS,
    )
    if (seen?.kind === 'policy-changed') return
    throw new SandboxError('STATE', {
      what: `${target} is not in force: ${seen === undefined ? 'the sandbox did not take it up' : String(seen['reason'])}`,
      hint: 'pen logs tells more',
    })
  }

  async grant(path: string, options: GrantOptions): Promise<void> {
    const life = duration(options.for ?? '1h')
    await this.#pen.verb(['grant', resolve(path), ...(options.rw === true ? ['--rw'] : []), '--for', life])
  }

  async revoke(path: string): Promise<void> {
    await this.#pen.verb(['revoke', resolve(path)])
  }
}

function lifeFlags({ session, once, always, for: ms }: AllowOptions): string[] {
  if (always === true) {
    if (session === true || once === true || ms !== undefined) throw usage('always has no end')
    return []
  }
  if (once !== true && ms === undefined) return ['--session']
  if (session === true) throw usage('session ends with the sandbox, and takes no other end')
  return [...(once === true ? ['--once'] : []), ...(ms === undefined ? [] : ['--for', duration(ms)])]
}

function duration(life: string | number): string {
  const text = typeof life === 'number' ? `${Math.ceil(life)}ms` : life
  if (!/^\d+(ms|s|m|h|d)$/.test(text))
    throw usage(`"${life}" is no time`, 'milliseconds, or a text such as "10m"')
  return text
}
