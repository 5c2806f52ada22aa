/** A copy of the live config for an editor, in a private directory. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { errnoText, PenError } from '../base/error.ts'
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
      // Editors read settings from the directory of a file. This one contains nothing from the project.
      this.directory = mkdtempSync(`${project.shared.stateDir}/edit-`)
      this.file = `${this.directory}/config.json`
      writeFileSync(this.file, this.#first, { mode: 0o600 })
    } catch (error) {
      throw new PenError('STATE', {
        what: `a copy to edit could not be made (${errnoText(error)})`,
        at: project.shared.stateDir,
        hint: 'check that the disk is not full',
        cause: error,
      })
    }
  }

  /** Applies the saved text if it is valid. Returns whether it changed anything. */
  async finish(): Promise<boolean> {
    const saved = readFileSync(this.file)
    if (saved.equals(Buffer.from(this.#first))) return false
    return await rewriteLiveConfig(this.#project, now => {
      if (sameBytes(now, this.#before)) return saved
      throw new PenError('STATE', {
        what: 'the live config was changed in the meantime: your edit was not applied',
        at: liveConfig(this.#project),
        hint: `your text is in ${this.file}; edit again: pen config edit`,
      })
    })
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
