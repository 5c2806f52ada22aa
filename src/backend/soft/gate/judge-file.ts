/** Resolves a path as an agent wrote it, judges it, and records the verdict. A refusal is recorded and thrown. */
import { lstatSync } from 'node:fs'
import type { AuditEventOf, AuditSink } from '../../../audit/event.ts'
import { PenError } from '../../../base/error.ts'
import { decideFile, type FileVerdict } from '../../../policy/files/decide-file.ts'
import { decideGrant, type FileGrant, grantFix, rootOf } from '../../../policy/files/decide-grant.ts'
import { absolute, type HostPath, type PathWorld } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { type Source, showSource } from '../../../policy/source.ts'
import { Refused } from './refused.ts'

const GRANT: Source = { layer: 'pen grant', place: undefined }

export type Access = AuditEventOf<'file-allowed'>['access']

export interface JudgeOptions {
  /** Called for each file, so that an edit of the policy applies at once. */
  readonly policy: () => Policy
  /** The name of the sandbox: a grant is for one sandbox. */
  readonly sandbox?: string | undefined
  readonly world: PathWorld
  readonly audit: AuditSink
  /** The current file grants of the user. Without it there are none. */
  readonly grants?: () => readonly FileGrant[]
}

export class FileJudge {
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /**
   * Resolves links as they are now. They may change at any moment, so the code that opens the path must not follow
   * links.
   */
  find(access: Access, text: string): HostPath {
    return this.#locate(access, this.#absolute(access, text))
  }

  /** Resolves only the parent directory: a delete removes a link, not its target. */
  findName(access: Access, text: string): HostPath {
    const path = this.#absolute(access, text)
    const cut = path.lastIndexOf('/')
    const parent = this.#locate(access, path.slice(0, cut) || '/')
    return `${parent === '/' ? '' : parent}${path.slice(cut)}` as HostPath
  }

  verdict(access: Access, path: HostPath): FileVerdict {
    const { policy, sandbox, grants, world } = this.#options
    const asked = access === 'read' || access === 'list' ? 'read' : 'write'
    const verdict = decideFile(policy(), path, asked)
    if (verdict.ok || verdict.reason !== 'not-granted' || grants === undefined) return verdict
    const granted = decideGrant(policy(), grants(), { path, access: asked, now: Date.now() })
    if (granted.ok && isTheSame(granted.grant)) return { ok: true, rule: granted.grant.path, source: GRANT }
    // The sandbox runs, so a grant applies at once, and a rule only after a restart.
    return { ...verdict, fix: grantFix({ ...policy(), sandbox }, world, path, asked) ?? verdict.fix }
  }

  /** Throws when the policy refuses. The audit has the record when this returns, and no file has been opened. */
  allow(access: Access, path: HostPath, names?: number): void {
    const verdict = this.verdict(access, path)
    if (!verdict.ok) throw this.refuse(access, path, verdict)
    const from = showSource(verdict.source)
    this.#options.audit.record({ kind: 'file-allowed', access, path, rule: verdict.rule, from, names })
  }

  refuse(access: Access, path: string, verdict: Omit<FileVerdict & { ok: false }, 'ok'>): Refused {
    const { reason, why, rule, source, fix } = verdict
    return this.#refused(access, path, { reason, why, rule, from: source && showSource(source), fix })
  }

  /** The policy allowed a path, and another file or a link is there now. */
  changed(access: Access, path: string): Refused {
    return this.#refused(access, path, {
      reason: 'link-in-the-way',
      why: 'the path contains a link, or changed while it was opened',
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
    verdict: {
      reason: string
      why: string
      fix: string
      rule?: string | undefined
      from?: string | undefined
    },
  ): Refused {
    this.#options.audit.record({ kind: 'file-denied', access, path, ...verdict })
    const { reason, why, fix } = verdict
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

/** True when the directory is still the one that was granted. */
function isTheSame(grant: FileGrant): boolean {
  const stats = lstatSync(rootOf(grant), { bigint: true, throwIfNoEntry: false })
  return stats?.isDirectory() === true && stats.dev === grant.root.dev && stats.ino === grant.root.ino
}
