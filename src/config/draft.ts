/** A copy of the live config for an editor, in a directory that nobody else can reach. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { liveConfig, readLive, rewriteLiveConfig, sameBytes } from './edit.ts'
import { printJson } from './json/json.ts'
import type { Project } from './project.ts'

export class Draft {
  readonly directory: string
  readonly file: string
  readonly #project: Project
  readonly #before: Buffer | undefined
  readonly #first: string

  constructor(project: Project) {
    this.#project = project
    this.#before = readLive(liveConfig(project))
    this.#first = this.#before?.toString('utf8') ?? printJson({ version: 1, profile: 'coding' })
    try {
      // Editors follow settings in the directory of a file: this one holds nothing of the project's.
      this.directory = mkdtempSync(`${project.stateDir}/edit-`)
      this.file = `${this.directory}/config.json`
      writeFileSync(this.file, this.#first, { mode: 0o600 })
    } catch (error) {
      throw new PenError('STATE', {
        what: `a copy to edit could not be made (${errnoOf(error) ?? 'unknown error'})`,
        at: project.stateDir,
        hint: 'check that the disk is not full',
        cause: error,
      })
    }
  }

  /** Puts what was saved in force, if all of it is right. Returns whether it differs from what was. */
  async finish(): Promise<boolean> {
    const saved = readFileSync(this.file)
    if (saved.equals(Buffer.from(this.#first))) return false
    return await rewriteLiveConfig(this.#project, now => {
      if (sameBytes(now, this.#before)) return saved
      throw new PenError('STATE', {
        what: 'the live config was changed by somebody else meanwhile: your edit was not taken',
        at: liveConfig(this.#project),
        hint: `it is kept in ${this.file}: run pen config edit again and take over what you need`,
      })
    })
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
