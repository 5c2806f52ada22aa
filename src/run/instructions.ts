/** What agents are told, put where a sandbox can show it: in pen's own state, and in the volumes of the agents. */
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import type { HostFacts } from '../plan/facts.ts'
import type { Plan } from '../plan/plan.ts'
import type { AgentPreset } from '../policy/presets.ts'
import { NOTE_PATH } from '../policy/profile.ts'
import type { Prepared } from './prepare.ts'

/** Longer than any run: nobody shows such an old one any more. */
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
 * An agent with a directory of its own reads its standing instructions there, and that directory is a volume: a link in it
 * leads to the note. What is in a volume was written by the sandbox: hostile. A link is made in its top directory, which no sandbox can
 * replace, and making one follows nothing; whatever has the name already stays, be it the agent's own or the user's.
 */
export function leaveInstructions({ volumes, readsAbove }: AgentPreset, { facts, plan }: Prepared): void {
  for (const { volume, at, instructions } of volumes) {
    // It has read them before it comes to its own directory.
    if (readsAbove && plan.steps.some(step => step.at === `${dirname(plan.workspace)}/${instructions}`))
      continue
    const from = `${facts.volumes}/${volume}`
    // The user's own mount may stand in the volume's place.
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
    what: `${what} (${errnoOf(cause) ?? 'unknown error'})`,
    at,
    hint: 'pen keeps its state in ~/.pen: make that directory writable, free disk space, or set HOME to a directory of yours',
    cause,
  })
