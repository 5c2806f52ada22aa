/** Writes the note for agents where a sandbox can show it: in pen's state, and as links in the agents' volumes. */
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import type { HostFacts } from '../plan/facts.ts'
import type { Plan } from '../plan/plan.ts'
import type { AgentPreset } from '../policy/presets.ts'
import { NOTE_PATH } from '../policy/profile.ts'
import type { Prepared } from './prepare.ts'

/** Longer than any run, so no sandbox still shows an older note. */
const LIFE = 30 * 24 * 3_600_000

/** Writes the note that the plan shows, unless it exists: the file is named by its contents. */
export function leaveNote({ note }: Pick<HostFacts, 'note'>, { steps }: Plan): void {
  const isShown = steps.some(step => step.op === 'bind' && step.from === note?.file)
  if (note === undefined || !isShown || existsSync(note.file)) return
  const directory = dirname(note.file)
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    writeFileAtomically(note.file, note.text, { mode: 0o644 })
    for (const name of readdirSync(directory)) {
      const made = lstatSync(`${directory}/${name}`, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
      if (Date.now() - made > LIFE) rmSync(`${directory}/${name}`, { force: true })
    }
  } catch (error) {
    throw error instanceof PenError ? error : cannot('pen cannot write its state', directory, error)
  }
}

/**
 * An agent reads its instructions in its own directory, which is a volume. pen puts a link to the note there. The contents of a volume
 * are hostile: the link is made in the volume's top directory, which no sandbox can replace, and no link is followed. An existing file
 * stays.
 */
export function leaveInstructions({ volumes, readsAbove }: AgentPreset, { facts, plan }: Prepared): void {
  for (const { volume, at, instructions } of volumes) {
    // The agent has already read the note above the project.
    if (readsAbove && plan.steps.some(step => step.at === `${dirname(plan.workspace)}/${instructions}`))
      continue
    const from = `${facts.volumes}/${volume}`
    // The user may have mounted something else there.
    const isShown = plan.steps.some(step => step.op === 'bind' && step.at === at && step.from === from)
    if (instructions === undefined || !isShown) continue
    try {
      mkdirSync(from, { recursive: true, mode: 0o700 })
      symlinkSync(NOTE_PATH, `${from}/${instructions}`)
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') continue
      throw cannot('a volume could not be prepared', from, error)
    }
  }
}

const cannot = (what: string, at: string, cause: unknown): PenError =>
  new PenError('STATE', {
    what: `${what} (${errnoText(cause)})`,
    at,
    hint: 'pen keeps its state in ~/.pen: make that directory writable, free disk space, or set HOME to a directory of yours',
    cause,
  })
