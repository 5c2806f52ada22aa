/**
 * Between one client in the sandbox, which is hostile, and the host's SSH agent. A client can list granted keys, bind its
 * connection to a server, and have a key sign for a granted purpose. Every other message fails, and never reaches the agent.
 */
import type { AuditSink } from '../audit/event.ts'
import { printable } from '../base/printable.ts'
import { number, PacketReader, packet, text } from '../protocol/ssh-packets.ts'
import { sshFingerprint } from './fingerprint.ts'
import { isSignedBy } from './host-key.ts'
import { readSignedData } from './signed-data.ts'

export interface AgentGrant {
  /** `SHA256:…`. */
  readonly keys: readonly string[]
  /** The granted `host:port` by the base64 of a key of that server. */
  readonly hostKeys: ReadonlyMap<string, string>
  /** Purposes of signatures, such as `git`. */
  readonly sign: readonly string[]
}

export interface FilterOptions {
  readonly grant: AgentGrant
  readonly audit: AuditSink
  /** Asks the host's agent. Takes and returns a message without its length. */
  readonly ask: (message: Buffer) => Promise<Buffer>
}

const FAILURE = Buffer.of(5)
const SUCCESS = Buffer.of(6)
const LIST = 11
const LISTED = 12
const SIGN = 13
const SIGNED = 14
const EXTENSION = 27
const BIND = 'session-bind@openssh.com'
const FIX = 'pen config edit: ssh.agent'

interface Bound {
  readonly session: Buffer
  readonly hostKey: Buffer
}

class Refused extends Error {}

export class AgentFilter {
  readonly #options: FilterOptions
  #bound: Bound | undefined
  /** Set by a bind that is not for a granted server, or for a forwarded agent. It stays. */
  #isRefused: boolean = false

  constructor(options: FilterOptions) {
    this.#options = options
  }

  /** Takes and returns a message without its length. */
  async answer(message: Buffer): Promise<Buffer> {
    let key: string | undefined
    try {
      const reader = new PacketReader(message)
      const kind = reader.byte()
      if (kind === LIST && reader.rest().length === 0) return await this.#list()
      if (kind === EXTENSION && reader.text() === BIND) return await this.#bind(reader, message)
      if (kind !== SIGN) return FAILURE
      const blob = reader.bytes()
      key = sshFingerprint(blob)
      return await this.#sign({ key, blob, data: reader.bytes(), message })
    } catch (error) {
      if (error instanceof Refused)
        this.#options.audit.record({
          kind: 'agent-refused',
          key: key ?? '-',
          reason: 'not-granted',
          why: error.message,
          fix: FIX,
        })
      return FAILURE
    }
  }

  async #list(): Promise<Buffer> {
    const reader = new PacketReader(await this.#options.ask(Buffer.of(LIST)))
    if (reader.byte() !== LISTED) return FAILURE
    const granted: Buffer[] = []
    for (let left = reader.number(); left > 0; left--) {
      const [blob, comment] = [reader.bytes(), reader.bytes()]
      if (this.#options.grant.keys.includes(sshFingerprint(blob))) granted.push(text(blob), text(comment))
    }
    return packet(LISTED, number(granted.length / 2), ...granted).subarray(4)
  }

  async #bind(reader: PacketReader, message: Buffer): Promise<Buffer> {
    const [hostKey, session, signature, forwards] = [
      reader.bytes(),
      reader.bytes(),
      reader.bytes(),
      reader.byte(),
    ]
    if (reader.rest().length > 0) return FAILURE
    const isFirst = this.#bound === undefined
    const isGranted = this.#options.grant.hostKeys.has(hostKey.toString('base64'))
    if (!isFirst || forwards !== 0 || !isGranted || !isSignedBy(hostKey, signature, session)) {
      this.#isRefused = true
      throw new Refused(
        forwards === 0 ? 'this server is not one of the granted hosts' : 'the agent may not be forwarded',
      )
    }
    this.#bound = { session, hostKey }
    // The agent may have keys that are limited to servers.
    await this.#options.ask(message)
    return SUCCESS
  }

  async #sign({
    key,
    blob,
    data,
    message,
  }: {
    readonly key: string
    readonly blob: Buffer
    readonly data: Buffer
    readonly message: Buffer
  }): Promise<Buffer> {
    const { grant, audit, ask } = this.#options
    if (!grant.keys.includes(key)) throw new Refused('this key is not granted')
    const target = this.#purpose(data, blob)
    // Recorded first: without a record nothing is signed.
    audit.record({ kind: 'agent-signed', key, target })
    const reply = await ask(message)
    return reply[0] === SIGNED ? reply : FAILURE
  }

  /** What the signature is for, in words for the audit. */
  #purpose(data: Buffer, blob: Buffer): string {
    const wanted = readSignedData(data, blob)
    if (wanted === undefined) throw new Refused('the data is neither a login nor a signature')
    if (wanted.kind === 'signature') {
      if (!this.#options.grant.sign.includes(wanted.namespace))
        throw new Refused(`signatures for "${printable(wanted.namespace, 64)}" are not granted`)
      return `signature: ${wanted.namespace}`
    }
    const bound = this.#bound
    if (this.#isRefused || bound === undefined)
      throw new Refused('the client did not say to which server it logs in; OpenSSH does from 8.9')
    if (!wanted.session.equals(bound.session) || wanted.hostKey?.equals(bound.hostKey) === false)
      throw new Refused('the login is for another server')
    return this.#options.grant.hostKeys.get(bound.hostKey.toString('base64')) ?? ''
  }
}
