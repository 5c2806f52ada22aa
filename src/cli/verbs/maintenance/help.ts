import { isatty } from 'node:tty'
import { EXIT, PenError } from '../../../base/error.ts'
import { windowSize } from '../../../terminal/host-terminal.ts'
import { findVerb, groupMembers } from '../../frame/find-verb.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { overview, USUAL_WIDTH, usageLine, verbHelp } from '../../frame/help-text.ts'
import { defineVerb, type Surroundings, type Verb, type VerbTable } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'help',
  summary: 'Tell what pen can do, or how one verb is used',
  flags: jsonFlag,
  positionals: { verb: { arity: 'many', about: 'the verb, in one or two words' } },
  examples: [
    { line: 'pen help', does: 'list all verbs' },
    { line: 'pen help version', does: 'the same as pen version --help' },
    { line: 'pen help --json', does: 'every verb with its flags, for documentation and completion' },
  ],
  insideSandbox: 'allow',
  async run({ flags, positionals, ...surroundings }) {
    await showHelp(positionals.verb, flags.json, surroundings)
    return EXIT.ok
  },
})

/** Help on a verb, on the verbs of a group, or without words on all. */
export async function showHelp(
  words: readonly string[],
  json: boolean,
  { env, terminal, verbs }: Surroundings,
): Promise<void> {
  const found = words.length === 0 ? undefined : await findVerb(words, verbs)
  if (found?.is === 'verb') {
    if (found.rest[0] !== undefined)
      throw new PenError('USAGE', {
        what: `there is no "pen ${words.join(' ')}"`,
        hint: `see pen help ${found.verb.name}`,
      })
    if (json) terminal.printJson(describe(found.verb))
    else terminal.print(verbHelp(found.verb, terminal.paint, await helpWidth(env)))
    return
  }
  const names = found ? groupMembers(found.name, verbs) : Object.keys(verbs)
  const listed = await loadVerbs(names, verbs)
  if (json) terminal.printJson({ verbs: listed.map(describe) })
  else terminal.print(overview(listed, terminal.paint, found?.name, await helpWidth(env)))
}

/** Longer lines than this are hard to read. */
const WIDEST = 100

async function helpWidth(env: Surroundings['env']): Promise<number> {
  const told = Number(env['COLUMNS'])
  const known = isatty(1) ? windowSize(1).cols : told
  return known >= 1 ? Math.min(known, WIDEST) : USUAL_WIDTH
}

async function loadVerbs(names: readonly string[], table: VerbTable): Promise<Verb[]> {
  const loads = names.flatMap(name => table[name] ?? [])
  return (await Promise.all(loads.map(load => load()))).map(module => module.verb)
}

function describe(verb: Verb) {
  const { name, summary, details, flags, positionals, command, examples, insideSandbox = 'refuse' } = verb
  return {
    name,
    summary,
    details,
    usage: usageLine(verb),
    flags,
    positionals,
    command,
    examples,
    insideSandbox,
  }
}
