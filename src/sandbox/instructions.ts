/**
 * An agent with a directory of its own reads its standing instructions there, and that directory is a volume. A link in it
 * leads to the note that pen puts into every sandbox.
 */
import { mkdirSync, symlinkSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { NOTE_PLACE, type PresetVolume } from '../policy/presets.ts'
import type { Prepared } from './prepare.ts'

/**
 * What is in a volume was written by the sandbox: hostile. A link is made in its top directory, which no sandbox can
 * replace, and making one follows nothing; whatever has the name already stays, be it the agent's own or the user's.
 */
export function leaveInstructions(volumes: readonly PresetVolume[], { facts, plan }: Prepared): void {
  for (const { volume, at, instructions } of volumes) {
    const from = `${facts.volumes}/${volume}`
    // The user's own mount may stand in the volume's place.
    const isShown = plan.steps.some(step => step.op === 'bind' && step.at === at && step.from === from)
    if (instructions === undefined || !isShown) continue
    try {
      mkdirSync(from, { recursive: true, mode: 0o700 })
      symlinkSync(NOTE_PLACE, `${from}/${instructions}`)
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') continue
      throw new PenError('STATE', {
        what: `a volume could not be prepared (${errnoOf(error) ?? 'unknown error'})`,
        at: from,
        hint: 'check that it may be written and that the disk is not full',
        cause: error,
      })
    }
  }
}
