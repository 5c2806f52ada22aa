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
  positionals: { name: { arity: 'optional', about: 'another one, as pen ls names it' } },
  examples: [
    { line: 'pen rm', does: 'after asking' },
    { line: 'pen rm api-1a2b3c4d5e6f7a8b', does: 'that of a project which is gone, perhaps' },
    { line: 'pen rm --volumes --yes', does: 'all of it, in a script' },
  ],
  async run({ flags, positionals, terminal }) {
    const { sandboxNamed } = await import('../sandbox/named-sandbox.ts')
    const { whileTelling } = await import('./progress.ts')
    const { forgetSandbox, isKnown } = await import('../sandbox/forget-sandbox.ts')
    const { id, stateDir, workspace } = await sandboxNamed(positionals.name)
    if (!isKnown(stateDir)) {
      if (flags.json) terminal.printJson({ version: 1, id, removed: false })
      else terminal.print(`${id}: nothing is kept of it`)
      return EXIT.ok
    }
    if (!flags.yes && !(await isAgreed(printable(workspace ?? id, 4096), flags.volumes, terminal))) {
      terminal.note('nothing was removed')
      return EXIT.failed
    }
    await whileTelling('ending the sandbox', terminal, () =>
      forgetSandbox(stateDir, { volumes: flags.volumes }),
    )
    if (flags.json) terminal.printJson({ version: 1, id, removed: true })
    else terminal.print(`${id}: removed`)
    return EXIT.ok
  },
})

async function isAgreed(
  workspace: string,
  volumes: boolean,
  terminal: Parameters<typeof import('./ask.ts').agrees>[1],
): Promise<boolean> {
  const { agrees, canAsk } = await import('./ask.ts')
  if (!(await canAsk()))
    throw new PenError('USAGE', {
      what: 'there is nobody to ask: this is no terminal',
      at: 'pen rm',
      hint: 'pen rm --yes removes without asking',
    })
  const what = `its configuration, audit${volumes ? ', volumes' : ''} and log`
  return agrees(`The sandbox of ${workspace} ends, and ${what} are removed.`, terminal)
}
