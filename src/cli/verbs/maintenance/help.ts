import { PenError } from '../../../base/error.ts'
import { windowSize } from '../../../terminal/host-terminal.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import { findVerb, groupMembers } from '../../frame/find-verb.ts'
import { fullOverview, groupOverview, overview, usageLine, verbHelp } from '../../frame/help-text.ts'
import { type CliContext, defineVerb, type Verb, type VerbTable } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'help',
  summary: 'Show the common verbs, all verbs, or how to use one',
  positionals: { verb: { arity: 'many', about: 'the verb, or all' } },
  examples: {
    'pen help': 'list the common verbs',
    'pen help all': 'list every verb',
    'pen help run': 'the same as pen run --help',
    'pen help --json': 'print every verb with its flags as JSON',
  },
  insideSandbox: 'allow',
  async run({ flags, positionals, env, terminal, verbs, groups }) {
    await showHelp(positionals.verb, flags.json, { env, terminal, verbs, groups })
  },
})

/** Shows help on a verb, on the verbs of a group, on all verbs, or without words on the common ones. */
export async function showHelp(
  words: readonly string[],
  json: boolean,
  { env, terminal, verbs, groups }: CliContext,
): Promise<void> {
  const page = { paint: terminal.paint, width: helpWidth(env) }
  const isAll = words.length === 1 && words[0] === 'all'
  const found = words.length === 0 || isAll ? undefined : await findVerb(words, verbs)
  if (found?.is === 'verb') {
    if (found.rest[0] !== undefined)
      throw new PenError('USAGE', {
        what: `unknown verb "${words.join(' ')}"`,
        hint: `pen help ${found.verb.name}`,
      })
    if (json) terminal.printJson(describe(found.verb))
    else terminal.print(verbHelp(found.verb, page))
    return
  }
  if (found !== undefined) {
    const members = await loadVerbs(groupMembers(found.name, verbs), verbs)
    if (json) terminal.printJson({ verbs: members.map(describe) })
    else terminal.print(groupOverview(found.name, members, page))
    return
  }
  if (json) {
    terminal.printJson({ verbs: (await loadVerbs(Object.keys(verbs), verbs)).map(describe) })
    return
  }
  const shown = groups.map(async group => ({
    title: group.title,
    verbs: await loadVerbs(isAll ? Object.keys(group.verbs) : group.common, verbs),
  }))
  const show = isAll ? fullOverview : overview
  terminal.print(show(await Promise.all(shown), page))
}

/** Longer lines are hard to read. */
const WIDEST = 100
/** If the width of the terminal is unknown. */
const USUAL_WIDTH = 80

function helpWidth(env: CliContext['env']): number {
  const known = isTerminal(1) ? windowSize(1).cols : Number(env['COLUMNS'])
  return known >= 1 ? Math.min(known, WIDEST) : USUAL_WIDTH
}

async function loadVerbs(names: readonly string[], table: VerbTable): Promise<Verb[]> {
  const loads = names.flatMap(name => table[name] ?? [])
  return (await Promise.all(loads.map(load => load()))).map(module => module.verb)
}

function describe(verb: Verb) {
  const { start: _, ...described } = verb
  return { insideSandbox: 'refuse', ...described, usage: usageLine(verb) }
}
