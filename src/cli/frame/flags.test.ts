import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from '../../base/error.ts'
import type { Bytes, Millis } from '../../base/quantity.ts'
import { defineFlags } from './flag-spec.ts'
import { ownFlags, parseArguments } from './flags.ts'

const shared = defineFlags({
  allow: { kind: 'list', value: 'HOST:PORT', about: 'reach this host' },
  offline: { kind: 'boolean', about: 'no network' },
})
const flags = defineFlags({
  ...shared,
  profile: { kind: 'choice', choices: ['strict', 'coding', 'dev'], about: 'start from this profile' },
  config: { kind: 'string', value: 'PATH', about: 'read this file' },
  wall: { kind: 'duration', value: 'TIME', about: 'stop after this time' },
  memory: { kind: 'bytes', value: 'SIZE', about: 'memory at most' },
  pids: { kind: 'count', value: 'N', about: 'processes at most' },
})
const plan = { name: 'plan', flags } as const
const run = { name: 'run', flags, command: 'optional' } as const

function refused(fn: () => unknown): PenError {
  try {
    fn()
  } catch (error) {
    if (error instanceof PenError && error.code === 'USAGE' && error.hint) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('flags', () => {
  test('each kind arrives as its own type', () => {
    const argv =
      '--allow a.test:443 --allow b.test:1 --offline --profile dev --config=x --wall 90s --memory 4GiB --pids 7'
    const { flags: got } = parseArguments(plan, argv.split(' '))
    const allow: readonly string[] = got.allow
    const offline: boolean = got.offline
    const profile: 'strict' | 'coding' | 'dev' | undefined = got.profile
    const config: string | undefined = got.config
    const wall: Millis | undefined = got.wall
    const memory: Bytes | undefined = got.memory
    const pids: number | undefined = got.pids
    expect<unknown>([allow, offline, profile, config, wall, memory, pids]).toEqual([
      ['a.test:443', 'b.test:1'],
      true,
      'dev',
      'x',
      90_000,
      4 * 2 ** 30,
      7,
    ])
  })

  test('what was not given is false, empty or undefined', () => {
    expect<unknown>(parseArguments(plan, []).flags).toEqual({
      allow: [],
      offline: false,
      profile: undefined,
      config: undefined,
      wall: undefined,
      memory: undefined,
      pids: undefined,
    })
  })

  test('a value may hold equals signs and dashes', () => {
    expect(parseArguments(plan, ['--config=a=b']).flags.config).toBe('a=b')
    expect(parseArguments(plan, ['--config=--offline']).flags).toMatchObject({
      config: '--offline',
      offline: false,
    })
    expect(parseArguments(plan, ['--config', '-']).flags.config).toBe('-')
  })

  test.each([
    [['--ofline'], 'unknown flag --ofline', 'did you mean --offline?'],
    [['--alow=x'], 'unknown flag --alow', 'did you mean --allow?'],
    [['--zzz'], 'unknown flag --zzz', 'pen plan --help'],
    [['--hlep'], 'unknown flag --hlep', 'did you mean --help?'],
    [['-offline'], 'unknown flag -offline', 'did you mean --offline?'],
    [['-x'], 'unknown flag -x', 'pen plan --help'],
    [['--__proto__'], 'unknown flag --__proto__', 'pen plan --help'],
    [['--constructor=x'], 'unknown flag --constructor', 'pen plan --help'],
    [['--OFFLINE'], 'unknown flag --OFFLINE', 'did you mean --offline?'],
    [['--config'], '--config needs a value', '--config PATH'],
    [['--config='], '--config needs a value', '--config PATH'],
    [['--config', ''], '--config needs a value', '--config PATH'],
    [['--config', '--offline'], '--config needs a value, and --offline looks like a flag', '--config=PATH'],
    [['--config', '--'], '--config needs a value, and -- looks like a flag', '--config=PATH'],
    [['--offline=true'], '--offline takes no value', '--offline without a value'],
    [['--offline', '--offline'], '--offline is given twice', 'remove one --offline'],
    [['--config', 'a', '--config=b'], '--config is given twice', 'remove one --config'],
    [['--profile', 'stirct'], '"stirct" is not a value of --profile', 'did you mean strict?'],
    [['--profile', 'x'], '"x" is not a value of --profile', 'choose one of strict, coding, dev'],
    [['--wall', '30'], '"30" is not a duration', 'write 30s for seconds or 30ms for milliseconds'],
    [['--memory', '4G'], '"4G" is not a size', 'write 4GiB (1024-based), or the exact number of bytes'],
    [['--pids', '1e3'], '"1e3" is not a whole number', '--pids 4'],
    [['stray'], 'unexpected argument "stray"', 'pen plan --help'],
    [['--', '--offline'], 'unexpected argument "--offline"', 'pen plan --help'],
    [[''], 'unexpected argument ""', 'pen plan --help'],
  ])('%j is refused with a fix', (argv, what, hint) => {
    const error = refused(() => parseArguments(plan, argv))
    expect([error.message, error.hint, error.exitCode]).toEqual([what, hint, 2])
  })
})

describe('a command', () => {
  test('begins at -- or at the first word that is no flag, and keeps its own flags', () => {
    for (const argv of [
      ['--offline', '--', 'npm', 'test', '--allow', '--', '-x'],
      ['--offline', 'npm', 'test', '--allow', '--', '-x'],
    ]) {
      const got = parseArguments(run, argv)
      expect(got.command).toEqual(['npm', 'test', '--allow', '--', '-x'])
      expect(got.flags).toMatchObject({ offline: true, allow: [] })
    }
  })

  test('after -- may begin with a dash', () => {
    expect(parseArguments(run, ['--', '--offline']).command).toEqual(['--offline'])
    expect(parseArguments(run, ['--', '--', 'x']).command).toEqual(['--', 'x'])
  })

  test('is not begun by the value of a flag', () => {
    const got = parseArguments(run, ['--config', 'x', 'cmd'])
    expect<unknown>([got.flags.config, got.command]).toEqual(['x', ['cmd']])
  })

  test('is never changed', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), command => {
        expect(parseArguments(run, ['--offline', '--', ...command]).command).toEqual(command)
      }),
    )
  })

  test('may be left out only where it is optional', () => {
    expect(parseArguments(run, ['--offline']).command).toEqual([])
    const exec = { name: 'exec', flags, command: 'required' } as const
    expect(refused(() => parseArguments(exec, ['--'])).message).toBe('no command given')
    expect(parseArguments(exec, ['ls']).command).toEqual(['ls'])
  })
})

describe('words', () => {
  const explain = {
    name: 'policy explain',
    flags,
    positionals: {
      target: { arity: 'one', about: '' },
      second: { arity: 'optional', about: '' },
      rest: { arity: 'many', about: '' },
    },
  } as const

  test('are taken in order, between flags and after --', () => {
    const { positionals, flags: got } = parseArguments(explain, [
      'a',
      '--offline',
      'b',
      '--',
      '-c',
      '--allow',
    ])
    const target: string = positionals.target
    const second: string | undefined = positionals.second
    const rest: readonly string[] = positionals.rest
    expect<unknown>([target, second, rest]).toEqual(['a', 'b', ['-c', '--allow']])
    expect(got.offline).toBe(true)
    expect<unknown>(parseArguments(explain, ['a']).positionals).toEqual({
      target: 'a',
      second: undefined,
      rest: [],
    })
  })

  test('a missing required one is refused', () => {
    expect(refused(() => parseArguments(explain, [])).message).toBe('no TARGET given')
  })
})

describe('own flags', () => {
  test('are not values, not words and not the command’s', () => {
    expect(ownFlags(run, ['--config', 'x', '--help', 'cmd', '--json'])).toEqual(['--config', '--help'])
    expect(ownFlags(run, ['--config', '--help', '--', '--json'])).toEqual(['--config', '--help'])
    expect(ownFlags(plan, ['word', '--nonsense', '--json'])).toEqual(['--nonsense', '--json'])
  })
})

describe('a command that only -- begins', () => {
  const agent = {
    name: 'agent',
    flags: shared,
    positionals: { name: { arity: 'optional', about: 'x' } },
    command: 'after-dashes',
  } as const

  test('gives flags after a word to pen, and everything after -- to the command', () => {
    const got = parseArguments(agent, ['codex', '--offline', '--', 'exec', '--offline', '--', 'x'])
    expect(got.positionals.name).toBe('codex')
    expect(got.flags.offline).toBe(true)
    expect(got.command).toEqual(['exec', '--offline', '--', 'x'])
    expect(ownFlags({ flags: shared, command: 'after-dashes' }, ['codex', '--json', '--', '--help'])).toEqual(
      ['--json'],
    )
  })

  test('takes no second word', () => {
    expect(refused(() => parseArguments(agent, ['codex', 'exec'])).message).toContain('exec')
    expect(parseArguments(agent, []).command).toEqual([])
  })
})

test('any words either parse or are refused with a fix, never crash', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('--', '-', '--allow', '--offline', '--wall=1s', '--memory', '4GiB', '--profile=dev'),
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), fc.constantFrom(plan, run), (argv, syntax) => {
      try {
        parseArguments(syntax, argv)
      } catch (error) {
        expect(error).toBeInstanceOf(PenError)
      }
    }),
  )
})

describe('short flags', () => {
  const exec = {
    name: 'exec',
    command: 'required',
    flags: defineFlags({
      interactive: { kind: 'boolean', short: 'i', about: 'input' },
      tty: { kind: 'boolean', short: 't', about: 'terminal' },
      cwd: { kind: 'string', value: 'PATH', about: 'where' },
    }),
  } as const

  test.each([[['-i', '-t']], [['-it']], [['-ti']], [['--interactive', '-t']]])('%j are both', words => {
    const { flags: got, command } = parseArguments(exec, [...words, 'sh', '-i'])
    expect(got).toMatchObject({ interactive: true, tty: true })
    expect(command).toEqual(['sh', '-i'])
  })

  test('a letter that is not declared, or one twice, is refused', () => {
    expect(refused(() => parseArguments(exec, ['-ix', 'sh'])).message).toBe('unknown flag -ix')
    expect(refused(() => parseArguments(exec, ['-ii', 'sh'])).message).toBe('--interactive is given twice')
    expect(refused(() => parseArguments(run, ['-i', 'sh'])).message).toBe('unknown flag -i')
  })
})

test('a long mistake is quoted in part', () => {
  const word = 'x'.repeat(5000)
  const syntax = { name: 'ls', flags: {} }
  for (const argv of [[word], [`--${word}`]]) expect(() => parseArguments(syntax, argv)).toThrow(/x{50,80}…/)
})
