/** A path as somebody wrote it becomes the path that it is, judged and recorded; or a refusal, recorded too. */
import { lstatSync } from 'node:fs'
import type { AuditSink } from '../../../audit/event.ts'
import type { FileAllowed } from '../../../audit/gate-event.ts'
import { PenError } from '../../../base/error.ts'
import { decideFile, type FileVerdict } from '../../../policy/files/decide-file.ts'
import { decideGrant, type FileGrant, grantFix, rootOf } from '../../../policy/files/decide-grant.ts'
import { absolute, type HostPath, type PathWorld } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { type Source, showSource } from '../../../policy/source.ts'
import { Refused } from './refused.ts'

const GRANT: Source = { layer: 'pen grant', place: undefined }

export type Access = FileAllowed['access']

export interface JudgeOptions {
  /** Asked anew for each file, so that an edit holds at once. */
  readonly policy: () => Policy
  readonly world: PathWorld
  readonly audit: AuditSink
  /** What the user granted while it runs, as it is now; without it nothing can be. */
  readonly grants?: () => readonly FileGrant[]
}

export class FileJudge {
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Where links lead, now. They may lead elsewhere in a moment: whoever opens it must not follow any. */
  find(access: Access, text: string): HostPath {
    return this.#locate(access, this.#absolute(access, text))
  }

  /** The name itself, in the directory that it is in: what is taken away is a link, not what it leads to. */
  findName(access: Access, text: string): HostPath {
    const path = this.#absolute(access, text)
    const cut = path.lastIndexOf('/')
    const parent = this.#locate(access, path.slice(0, cut) || '/')
    return `${parent === '/' ? '' : parent}${path.slice(cut)}` as HostPath
  }

  verdict(access: Access, path: HostPath): FileVerdict {
    const { policy, grants, world } = this.#options
    const asked = access === 'read' || access === 'list' ? 'read' : 'write'
    const said = decideFile(policy(), path, asked)
    if (said.ok || said.reason !== 'not-granted' || grants === undefined) return said
    const granted = decideGrant(policy(), grants(), { path, access: asked, now: Date.now() })
    if (granted.ok && isTheSame(granted.grant)) return { ok: true, rule: granted.grant.path, source: GRANT }
    // It runs: a grant is in force at once, and a rule only after a restart.
    return { ...said, fix: grantFix(policy(), world, path, asked) ?? said.fix }
  }

  /** Throws when the policy says no. A yes is in the audit when this returns, and nothing has been opened yet. */
  allow(access: Access, path: HostPath, names?: number): void {
    const said = this.verdict(access, path)
    if (!said.ok) throw this.refuse(access, path, said)
    const from = showSource(said.source)
    this.#options.audit.record({ kind: 'file-allowed', access, path, rule: said.rule, from, names })
  }

  refuse(access: Access, path: string, said: Omit<FileVerdict & { ok: false }, 'ok'>): Refused {
    const { reason, why, rule, source, fix } = said
    return this.#refused(access, path, { reason, why, rule, from: source && showSource(source), fix })
  }

  /** The policy said yes to a path, and by now another file, or a link, stands there. */
  changed(access: Access, path: string): Refused {
    return this.#refused(access, path, {
      reason: 'link-in-the-way',
      why: 'a link stands in the way, or the place changed while it was opened',
      fix: 'name the file itself, and ask again',
    })
  }

  notOwn(access: Access, path: string): Refused {
    return this.#refused(access, path, {
      reason: 'not-theirs',
      why: 'pen runs as root, and the owner of the project may not do this',
      fix: 'change it yourself, or give the file to the owner of the project',
    })
  }

  #refused(
    access: Access,
    path: string,
    said: { reason: string; why: string; fix: string; rule?: string | undefined; from?: string | undefined },
  ): Refused {
    this.#options.audit.record({ kind: 'file-denied', access, path, ...said })
    const { reason, why, fix } = said
    return new Refused({ what: `${access} is refused`, why, at: path, reason, fix })
  }

  #absolute(access: Access, text: string): string {
    const made = absolute(text, this.#options.world)
    if (made.ok) return made.value
    throw this.#refused(access, text, { reason: 'bad-path', why: made.why, fix: made.fix ?? 'name a file' })
  }

  #locate(access: Access, path: string): HostPath {
    try {
      return this.#options.world.locate(path).real as HostPath
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      const fix = error.hint ?? 'name a file that can be reached'
      throw this.#refused(access, path, { reason: 'bad-path', why: error.message, fix })
    }
  }
}

/** Whether the directory that was granted is the one that is there. */
function isTheSame(grant: FileGrant): boolean {
  const stats = lstatSync(rootOf(grant), { bigint: true, throwIfNoEntry: false })
  return stats?.isDirectory() === true && stats.dev === grant.root.dev && stats.ino === grant.root.ino
}
