import { describe, expect, test } from 'bun:test'
import { PenError } from '../../base/error.ts'
import { printableJson } from '../../base/printable.ts'
import { painted, plain } from '../render/colour.ts'
import { dispatch } from './dispatch.ts'
import { jsonFlag } from './flag-spec.ts'
import { OutputClosed } from './terminal.ts'
import { defineVerb, type VerbTable } from './verb.ts'
import { VERB_GROUPS, VERBS } from './verbs.ts'

const loaded: string[] = []
const hostile = 'a\u001b[2J\nb'
const run = defineVerb({
  name: 'run',
  summary: 'Run a command in a sandbox',
  details: 'The sandbox lives as long as the command.',
  flags: {
    ...jsonFlag,
    allow: { kind: 'list', value: 'HOST:PORT', about: 'reach this host' },
    'a-flag-with-a-rather-long-name': { kind: 'string', value: 'VALUE', about: 'a long one' },
  },
  command: 'optional',
  examples: {
    'pen run -- npm test': 'run the tests',
  },
  async run({ command, terminal }) {
    if (command[0] === 'closed') throw new OutputClosed()
    if (command[0] === 'hostile')
      throw new PenError('CONFIG_VALUE', {
        what: hostile,
        at: { file: hostile, line: 3, column: 7 },
        hint: hostile,
      })
    if (command[0] === 'bug') throw new TypeError(`x is not a function${hostile}`)
    terminal.print(command.join(' '))
    return 42
  },
})
const explain = defineVerb({
  name: 'policy explain',
  summary: 'Tell which rule decides',
  flags: jsonFlag,
  positionals: { target: { arity: 'one', about: 'a host and port, or a path' } },
  examples: {},
  insideSandbox: 'allow',
  async run({ positionals, terminal }) {
    terminal.print(positionals.target)
    return 0
  },
})
const load = (name: string, verb: typeof run) => async () => {
  loaded.push(name)
  return { verb }
}
const verbs: VerbTable = {
  ...VERBS,
  run: load('run', run),
  'policy explain': load('policy explain', explain),
}

async function pen(argv: readonly string[], env: Record<string, string> = {}, paint = plain) {
  let out = ''
  let err = ''
  const terminal = {
    print: (text: string) => {
      out += `${text}\n`
    },
    printJson: (value: unknown) => {
      out += `${printableJson(value)}\n`
    },
    note: (text: string) => {
      err += `${text}\n`
    },
    paint,
    paintNote: paint,
  }
  const code = await dispatch(argv, { env, terminal, verbs, groups: VERB_GROUPS })
  return { code, out, err }
}

describe('dispatch', () => {
  test('the verb’s exit code is pen’s', async () => {
    expect(await pen(['run', '--', 'x', '--json'])).toEqual({ code: 42, out: 'x --json\n', err: '' })
  })

  test('a verb of two words is found, and only the verb in use is loaded', async () => {
    loaded.length = 0
    expect(await pen(['policy', 'explain', 'allowed.test:443'])).toMatchObject({
      code: 0,
      out: 'allowed.test:443\n',
    })
    expect(loaded).toEqual(['policy explain'])
  })

  test.each([
    [[], 'no verb given', 'pen help'],
    [['rnu'], 'unknown verb "rnu"', 'did you mean pen run?'],
    [['polcy', 'explain'], 'unknown verb "polcy"', 'did you mean pen policy?'],
    [['policy', 'explian'], 'unknown verb "policy explian"', 'did you mean pen policy explain?'],
    [['policy', 'zzzzzzzzz'], 'unknown verb "policy zzzzzzzzz"', 'pen policy --help'],
    [['policy'], 'pen policy needs a subcommand', 'pen policy --help'],
    [['__proto__'], 'unknown verb "__proto__"', 'pen help'],
    [['constructor'], 'unknown verb "constructor"', 'pen help'],
    [['policy explain'], 'unknown verb "policy explain"', 'pen help'],
    [['help', 'run', 'x'], 'unknown verb "run x"', 'pen help run'],
    [['run', 'a\0b'], 'argument 2 contains a NUL byte', 'rename the file, or pass UTF-8 text'],
    [['run', 'a\ud800'], 'argument 2 is not valid Unicode', 'rename the file, or pass UTF-8 text'],
  ])('%j is refused with a fix', async (argv, what, hint) => {
    const { code, out, err } = await pen(argv)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toBe(`pen: USAGE: ${what}\n  fix: ${hint}\n`)
  })

  test('a mistake names the place', async () => {
    expect((await pen(['run', '--alow'])).err).toBe(
      'pen: USAGE: unknown flag --alow\n  at pen run\n  fix: did you mean --allow?\n',
    )
    expect((await pen(['--offline', 'run'])).err).toContain('flags come after the verb')
  })

  test('hostile text in an error cannot drive the terminal or add lines', async () => {
    const { code, err } = await pen(['run', 'hostile'])
    const shown = 'a\\u001b[2J\\u000ab'
    expect(err).toBe(`pen: CONFIG_VALUE: ${shown}\n  at ${shown}:3:7\n  fix: ${shown}\n`)
    expect(code).toBe(2)
  })

  test('colour goes around the text, never into it', async () => {
    expect((await pen(['rnu'], {}, painted)).err).toBe(
      'pen: \u001b[31mUSAGE\u001b[39m: unknown verb "rnu"\n  \u001b[32mfix:\u001b[39m did you mean pen run?\n',
    )
  })

  test('with --json an error is one object with the same keys', async () => {
    const { code, err } = await pen(['run', '--json', 'hostile'])
    expect(code).toBe(2)
    expect(err.split('\n')).toHaveLength(2)
    expect(JSON.parse(err)).toEqual({
      error: { code: 'CONFIG_VALUE', what: hostile, at: `${hostile}:3:7`, hint: hostile },
    })
    expect(JSON.parse((await pen(['rnu', '--json'])).err).error.at).toBeNull()
    expect(JSON.parse((await pen(['run', '--json', '--nope'])).err).error.code).toBe('USAGE')
  })

  test('--json of the command does not change how pen prints errors', async () => {
    expect((await pen(['run', 'hostile', '--json'])).err).toStartWith('pen: CONFIG_VALUE')
    expect((await pen(['run', '--', 'hostile', '--json'])).err).toStartWith('pen: CONFIG_VALUE')
  })

  test('a bug in pen is one line without a stack, and has a stack with PEN_DEBUG=1', async () => {
    const { code, err } = await pen(['run', 'bug'])
    expect(code).toBe(125)
    expect(err).toStartWith('pen: INTERNAL: x is not a functiona\\u001b[2J\n  fix: ')
    expect(err).not.toContain('dispatch.test.ts')
    const debug = await pen(['run', 'bug'], { PEN_DEBUG: '1' })
    expect(debug.err).toContain('dispatch.test.ts')
    expect(debug.err).not.toContain('\u001b')
  })

  test('a closed stdout is no failure', async () => {
    expect(await pen(['run', 'closed'])).toEqual({ code: 141, out: '', err: '' })
  })
})

describe('inside a sandbox', () => {
  const env = { AGENT_IN_SANDBOX: '1' }

  test('a verb that launches is refused, even when its arguments are wrong', async () => {
    for (const argv of [
      ['run', 'x'],
      ['run', '--nope'],
    ]) {
      const { code, out, err } = await pen(argv, env)
      expect({ code, out }).toEqual({ code: 125, out: '' })
      expect(err).toStartWith('pen: INSIDE_SANDBOX: pen run does not work inside a sandbox\n')
    }
  })

  test('help, version and read-only verbs still work', async () => {
    for (const argv of [['help'], ['run', '--help'], ['--version'], ['policy', 'explain', 'x']])
      expect((await pen(argv, env)).code).toBe(0)
  })

  test('an empty variable or 0 does not count', async () => {
    for (const mark of ['', '0']) expect((await pen(['run', 'x'], { AGENT_IN_SANDBOX: mark })).code).toBe(42)
  })
})

describe('help', () => {
  const runHelp = `Run a command in a sandbox.

The sandbox lives as long as the command.

Usage
  pen run [flags] [-- COMMAND…]

Flags
  --json                        print JSON, including errors
  --allow HOST:PORT             reach this host (may be repeated)
  --a-flag-with-a-rather-long-name VALUE
                                a long one
  --name SANDBOX                a named sandbox of this project; pen ls lists
                                them
  --help                        show this help

Examples
  pen run -- npm test
      run the tests
`
  test('of a verb shows usage, flags and examples, however it is asked for', async () => {
    for (const argv of [
      ['help', 'run'],
      ['--help', 'run'],
      ['run', '--help'],
      ['run', '-h'],
      ['run', '--nope', '--help'],
      ['run', '--allow', 'a.test:1', '--help', 'x'],
    ])
      expect(await pen(argv)).toEqual({ code: 0, out: runHelp, err: '' })
  })

  test('after the command belongs to the command', async () => {
    expect((await pen(['run', 'npm', '--help'])).out).toBe('npm --help\n')
    expect((await pen(['run', '--', '--help'])).out).toBe('--help\n')
  })

  test('of a group lists its verbs', async () => {
    for (const argv of [
      ['policy', '--help'],
      ['help', 'policy'],
    ]) {
      const { code, out } = await pen(argv)
      expect(code).toBe(0)
      expect(out).toContain('  pen policy explain  Tell which rule decides\n')
      expect(out).not.toContain('pen run')
    }
    expect((await pen(['help', 'policy', 'explain'])).out).toContain('  pen policy explain [flags] TARGET\n')
  })

  test('without words shows the common verbs of each group, in one screen of 80x24', async () => {
    for (const argv of [['help'], ['--help'], ['-h']]) {
      const { out } = await pen(argv)
      const lines = out.trimEnd().split('\n')
      for (const { title, common } of VERB_GROUPS) {
        expect(lines.some(line => line.startsWith(`${title} `) && line.includes(` ${common[0]} `))).toBe(true)
        for (const name of common) expect(out).toMatch(new RegExp(`  ${name} +[A-Z]`))
      }
      // The command above it and the prompt below it have a line each.
      expect(lines.length).toBeLessThanOrEqual(22)
      expect(lines.filter(line => line.length > 80)).toEqual([])
    }
  })

  test('of all lists every verb below its group', async () => {
    for (const argv of [
      ['help', 'all'],
      ['--help', 'all'],
    ]) {
      const { out } = await pen(argv)
      for (const { title } of VERB_GROUPS) expect(out).toContain(`${title}\n  pen `)
      for (const name of Object.keys(verbs)) expect(out).toContain(`  pen ${name} `)
    }
  })

  test('as JSON describes verbs and flags', async () => {
    expect(JSON.parse((await pen(['help', 'run', '--json'])).out)).toMatchObject({
      name: 'run',
      command: 'optional',
      insideSandbox: 'refuse',
      flags: { allow: { kind: 'list', value: 'HOST:PORT' } },
    })
    const all: { verbs: { name: string }[] } = JSON.parse((await pen(['help', '--json'])).out)
    expect(all.verbs.map(v => v.name)).toEqual(Object.keys(verbs))
  })
})

test('every verb of the table has its own name, help and well-formed declarations', async () => {
  for (const [name, load] of Object.entries(VERBS)) {
    const { verb } = await load()
    expect(verb.name).toBe(name)
    expect(verb.summary).toMatch(/^[A-Z].*[^.]$/)
    expect(verb.examples.length).toBeGreaterThan(0)
    for (const { line } of verb.examples) expect(line).toStartWith(`pen `)
    for (const flag of Object.keys(verb.flags)) {
      expect(flag).toMatch(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/)
      expect(flag).not.toBe('help')
    }
    const arities = Object.values(verb.positionals).map(p => p.arity)
    expect(arities).toEqual(arities.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)))
    if (verb.command !== undefined && verb.command !== 'after-dashes') expect(arities).toEqual([])
  }
})
const order = ['one', 'optional', 'many']
