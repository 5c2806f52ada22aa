/**
 * Shows a tree with another owner: the owner's files appear as the sandbox's, and the sandbox's new files belong to the
 * owner. Root needs it to let an ordinary uid work in a tree that root owns.
 */
import { closeSync, openSync, readlinkSync, writeFileSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { startTimeOf } from '../../base/kernel/processes.ts'
import { startProgram } from '../../base/start-program.ts'
import { IDMAP, setAttributes } from './mount-calls.ts'

export interface Identity {
  readonly uid: number
  readonly gid: number
}

/**
 * A user namespace that maps the owner to the sandbox's uid, and every other id to itself. So files with another group
 * or owner do not break the mapping. Only the mapping is used: the namespace runs one `cat`, which waits.
 */
export class IdMapping {
  readonly #owner: Identity
  readonly #sandbox: Identity
  readonly #target: TargetId
  readonly #holder: Holder
  #fd: number | undefined

  constructor(owner: Identity, sandbox: Identity, target: TargetId = 'unmapped') {
    this.#target = target
    this.#owner = owner
    this.#sandbox = sandbox
    this.#holder = held ?? startHolder()
    held = undefined
  }

  /** For a detached mount that is not in use yet. */
  apply(tree: number, path: string): void {
    const namespace = this.#namespace()
    try {
      setAttributes(tree, IDMAP, { namespace })
    } catch (error) {
      throw new PenError('BACKEND', {
        what: `the file system of ${path} cannot map root’s files to another user (no idmapped mounts)`,
        hint: 'run pen as an ordinary user, or chown the project to one: root then runs the sandbox as that user',
        cause: error,
      })
    }
  }

  /** The descriptor of the namespace. The first call waits for it. */
  #namespace(): number {
    if (this.#fd !== undefined) return this.#fd
    this.#awaitNamespace()
    const { pid } = this.#holder
    writeFileSync(`/proc/${pid}/uid_map`, idMap(this.#owner.uid, this.#sandbox.uid, this.#target))
    writeFileSync(`/proc/${pid}/gid_map`, idMap(this.#owner.gid, this.#sandbox.gid, this.#target))
    this.#fd = openSync(`/proc/${pid}/ns/user`, 'r')
    return this.#fd
  }

  #awaitNamespace(): void {
    const own = readlinkSync('/proc/self/ns/user')
    const deadline = performance.now() + 2000
    do {
      try {
        if (readlinkSync(`/proc/${this.#holder.pid}/ns/user`) !== own) return
      } catch {
        // The process has not started yet, or has ended.
      }
      // The runtime reports an exit only in the next turn of its event loop, and /proc at once.
    } while (startTimeOf(this.#holder.pid) !== undefined && performance.now() < deadline)
    throw new PenError('BACKEND', { what: 'a user namespace could not be made', hint: USERNS_HINT })
  }

  end(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    this.#holder.kill()
  }
}

const LAST_ID = 0xffff_fffe

/**
 * What the id `to` on the disk becomes. `swapped` exchanges it with `from`, for a runtime that makes files as `from` and
 * then changes their owner.
 */
export type TargetId = 'unmapped' | 'swapped'

/** Maps `from` on the disk to `to` in the sandbox. The kernel refuses an id that is mapped twice. */
export function idMap(from: number, to: number, target: TargetId = 'unmapped'): string {
  const [low, high] = from < to ? [from, to] : [to, from]
  const same = (first: number, last: number): string[] =>
    first > last ? [] : [`${first} ${first} ${last - first + 1}`]
  const lines = [
    ...same(0, low - 1),
    `${from} ${to} 1`,
    ...(target === 'swapped' && from !== to ? [`${to} ${from} 1`] : []),
    ...same(low + 1, high - 1),
    ...same(high + 1, LAST_ID),
  ]
  return `${lines.join('\n')}\n`
}

interface Holder {
  readonly pid: number
  kill(): void
}

let held: Holder | undefined

/** Starts the process that the next mapping needs, which takes 1 to 2 ms. */
export function prepareMapping(): void {
  held ??= startHolder()
}

/** The process ends with its input, also when pen is killed. */
function startHolder(): Holder {
  const unshare = findTool('unshare')
  const cat = findTool('cat')
  if (unshare === undefined) throw missingTool('unshare', 'install util-linux')
  if (cat === undefined) throw missingTool('cat', 'install coreutils')
  const [input, writer] = pipe()
  const child = startProgram([unshare, '--user', cat], {
    stdio: [input, 'ignore', 'ignore'],
    env: {},
    cwd: '/',
  })
  closeSync(input)
  return {
    pid: child.pid,
    kill: () => {
      closeSync(writer)
      child.kill('SIGKILL')
    },
  }
}

export const USERNS_HINT =
  'user namespaces are blocked here: on Ubuntu 24.04 allow bwrap in AppArmor (sysctl kernel.apparmor_restrict_unprivileged_userns=0), in Docker run with --security-opt seccomp=unconfined, on hardened kernels set kernel.unprivileged_userns_clone=1'
