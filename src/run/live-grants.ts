/** The user's file grants while a sandbox runs. They are read at every access, so a revoked grant ends at once. */
import type { AuditSink } from '../audit/event.ts'
import { PenError, showPlace } from '../base/error.ts'
import { fileGrantsFile, readFileGrants } from '../config/grants/file-grants.ts'
import type { FileGrant } from '../policy/files/decide-grant.ts'
import { lookOf } from './live-files.ts'

export class LiveGrants {
  readonly #stateDir: string
  readonly #audit: AuditSink
  readonly #tell: (line: string) => void
  #seen = '-'
  #grants: readonly FileGrant[] = []

  constructor(stateDir: string, audit: AuditSink, tell: (line: string) => void) {
    this.#stateDir = stateDir
    this.#audit = audit
    this.#tell = tell
  }

  /** The same list as long as the file has not changed. */
  now(): readonly FileGrant[] {
    const seen = lookOf(fileGrantsFile(this.#stateDir))
    if (seen === this.#seen) return this.#grants
    this.#grants = seen === '-' ? [] : this.#read()
    // The state from before the read: an edit in between is noticed at the next look.
    this.#seen = seen
    return this.#grants
  }

  /** A file that cannot be read completely grants nothing. The user can grant again. */
  #read(): readonly FileGrant[] {
    try {
      return readFileGrants(this.#stateDir)
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      const at = error.at === undefined ? undefined : showPlace(error.at)
      this.#audit.record({ kind: 'policy-edit-refused', reason: error.message, at, fix: error.hint })
      this.#tell(`grants: no file is served, because they cannot be read: ${error.message}`)
      return []
    }
  }
}
