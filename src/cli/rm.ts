import { EXIT, PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { defineFlags, jsonFlag } from './flag-spec.ts'
import { defineVerb } from './verb.ts'

export const verb = defineVerb({
  name: 'rm',
  summary: 'End the sandbox of this project and forget what pen keeps of it',
  details:
    'Its live configuration, audit and log are removed; with --volumes its volumes too, which otherwise stay for the next time. The project itself is not touched, nor is its .pen/, which pen init or pen config apply puts in force again.',
  flags: defineFlags({
    ...jsonFlag,
    volumes: { kind: 'boolean', about: 'remove its volumes as well' },
    yes: { kind: 'boolean', about: 'do not ask' },
  }),
  examples: [
    { line: 'pen rm', does: 'after asking' },
    { line: 'pen rm --volumes --yes', does: 'all of it, in a script' },
  ],
  async run({ flags, terminal }) {
    const { findProject } = await import('../config/project.ts')
    const { forgetSandbox, isKnown } = await import('../sandbox/forget-sandbox.ts')
    const { id, stateDir, world } = findProject()
    if (!isKnown(stateDir)) {
      if (flags.json) terminal.printJson({ version: 1, id, removed: false })
      else terminal.print(`${id}: nothing is kept of it`)
      return EXIT.ok
    }
    if (!flags.yes) await agree(printable(world.workspace, 4096), flags.volumes, terminal)
    await forgetSandbox(stateDir, { volumes: flags.volumes })
    if (flags.json) terminal.printJson({ version: 1, id, removed: true })
    else terminal.print(`${id}: removed`)
    return EXIT.ok
  },
})

async function agree(
  workspace: string,
  volumes: boolean,
  terminal: Parameters<typeof import('./ask.ts').agrees>[1],
): Promise<void> {
  const { agrees, canAsk } = await import('./ask.ts')
  if (!(await canAsk()))
    throw new PenError('USAGE', {
      what: 'there is nobody to ask: this is no terminal',
      at: 'pen rm',
      hint: 'pen rm --yes removes without asking',
    })
  const what = `its configuration, audit${volumes ? ', volumes' : ''} and log`
  if (agrees(`The sandbox of ${workspace} ends, and ${what} are removed.`, terminal)) return
  throw new PenError('USAGE', { what: 'nothing was removed', at: 'pen rm', hint: 'the answer was not yes' })
}
