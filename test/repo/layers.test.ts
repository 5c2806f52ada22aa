/**
 * The architecture, as a table. Data flows one way: config → policy → plan → backend → sandbox.
 * A folder may import itself and what its row names, nothing else.
 */
import { describe, expect, test } from 'bun:test'
import { type Source, sources } from './sources.ts'

const LAYERS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ['base'],
  // Pure: no I/O, no clock, no environment. Gateway, broker and `pen policy explain` share these verdicts.
  policy: ['base'],
  plan: ['policy', 'base'],
  // Disk to text with positions, and back.
  config: ['policy', 'base'],
  audit: ['policy', 'base'],
  // The one way out and the file server: both ask policy/ and record before they act.
  gateway: ['policy', 'audit', 'wire', 'base'],
  broker: ['policy', 'audit', 'wire', 'base'],
  // What a sandbox may use up: cgroups, rlimits, watchdogs.
  limits: ['plan', 'policy', 'base'],
  // Where no kernel confines a sandbox: pen itself judges and records each file, program and connection that a tool asks for.
  gate: ['gateway', 'limits', 'audit', 'plan', 'policy', 'base'],
  backend: ['gate', 'audit', 'limits', 'plan', 'policy', 'wire', 'base'],
  // pen as root, in a container of its own, for a supervisor that is not: it does what it is told by that supervisor alone.
  hand: ['gateway', 'limits', 'wire', 'base'],
  // What a container's file system is made from, and what an engine has of it.
  image: ['backend', 'config', 'policy', 'base'],
  // A running plan.
  sandbox: [
    'image',
    'backend',
    'limits',
    'gateway',
    'broker',
    'audit',
    'config',
    'plan',
    'policy',
    'wire',
    'base',
  ],
  // Runs inside a sandbox: whatever it carries is in hostile hands, so it carries little.
  inner: ['wire', 'base'],
  // A sandbox as a value, for programs on Node and on Bun: it starts the pen binary, and talks to the supervisor that this leaves.
  library: ['sandbox', 'gateway', 'backend', 'audit', 'wire', 'base'],
  // Tools for a model, over the library. Loaded by `pen mcp` alone.
  mcp: ['library', 'base'],
  // Tries the parts of a sandbox one by one, each by the code that a run would use: so it sees all of them.
  doctor: ['sandbox', 'backend', 'limits', 'gateway', 'audit', 'config', 'plan', 'policy', 'base'],
  cli: [
    'mcp',
    'doctor',
    'sandbox',
    'image',
    'backend',
    'limits',
    'gateway',
    'broker',
    'audit',
    'config',
    'plan',
    'policy',
    'inner',
    'wire',
    'base',
  ],
}

/** Runtime packages that may be imported, and from where. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  valibot: ['policy', 'config'],
  'tldts-icann': ['policy', 'config'],
  '@modelcontextprotocol/sdk': ['mcp'],
}

/** What only ever runs in the pen binary, which is Bun. */
const KEEPER = ['gate', 'hand', 'backend', 'limits', 'sandbox', 'gateway', 'broker', 'inner', 'doctor']
/** Takes Bun's way where Bun is, and Node's elsewhere; and what is loaded only by verbs that edit, never by the library. */
const ASKS_FIRST = ['src/base/sha256.ts', 'src/config/lock.ts']
/** What every layer of the supervisor needs, and the inner mode too; the library reaches none of it. */
const BENEATH_THE_KEEPER = [
  'src/base/kernel/c-library.ts',
  'src/base/kernel/enter-mounts.ts',
  'src/base/kernel/libc.ts',
  'src/base/kernel/descriptors.ts',
  'src/base/directory-entries.ts',
  'src/base/kernel/descriptor-socket.ts',
  'src/base/kernel/run-with-descriptors.ts',
  'src/base/spawn.ts',
]
/** The binary's own entry point: no library user imports it. */
const ENTRY = 'src/main.ts'

const PURE = ['policy', 'plan']
/** Only names and arithmetic: no file, socket, clock or process behind them. */
const PURE_NODE = ['node:path', 'node:path/posix']
const IMPURE_WORDS =
  /\b(process\.|Bun\.|Date\.now|new Date\(\)|performance\.|Math\.random|setTimeout|setInterval|fetch\(|console\.)/

const all = sources('src').filter(source => !source.isTest)
const byPath = new Map(all.map(source => [source.path, source]))
const layerOf = (path: string): string => path.split('/')[1] ?? ''

const breaches = (check: (source: Source) => readonly string[]): string[] =>
  all.flatMap(source => check(source).map(problem => `${source.path} ${problem}`))

describe('layers', () => {
  test('every folder of src/ has a row in the table', () => {
    const folders = all
      .filter(source => source.path.split('/').length > 2)
      .map(source => layerOf(source.path))
    expect([...new Set(folders)].filter(folder => LAYERS[folder] === undefined)).toEqual([])
  })

  test('a folder imports only what its row allows', () => {
    expect(
      breaches(source => {
        const from = layerOf(source.path)
        const allowed = LAYERS[from]
        if (allowed === undefined) return [] // main.ts and index.ts may import anything
        return source.imports.flatMap(({ file, specifier }) => {
          if (file === undefined || !file.startsWith('src/')) return []
          const to = layerOf(file)
          return to === from || allowed.includes(to) ? [] : [`imports ${specifier}`]
        })
      }),
    ).toEqual([])
  })

  test('nobody but main.ts imports cli/', () => {
    expect(
      breaches(source =>
        layerOf(source.path) === 'cli' || source.path === 'src/main.ts'
          ? []
          : source.imports
              .filter(({ file }) => file?.startsWith('src/cli/'))
              .map(i => `imports ${i.specifier}`),
      ),
    ).toEqual([])
  })

  test('runtime packages are imported only where the table says', () => {
    expect(
      breaches(source =>
        source.imports.flatMap(({ specifier }) => {
          if (specifier.startsWith('.') || /^(node|bun):/.test(specifier)) return []
          const name = Object.keys(PACKAGES).find(key => specifier === key || specifier.startsWith(`${key}/`))
          if (name === undefined) return [`imports ${specifier}, which is not a runtime package of pen`]
          return PACKAGES[name]?.includes(layerOf(source.path)) ? [] : [`imports ${specifier}`]
        }),
      ),
    ).toEqual([])
  })

  test('policy/ and plan/ reach no I/O, not even through what they import', () => {
    const impure = (path: string, seen: Set<string>): string[] => {
      const source = byPath.get(path)
      if (source === undefined || seen.has(path)) return []
      seen.add(path)
      return source.imports.flatMap(({ specifier, file, typeOnly }) => {
        if (typeOnly) return []
        if (file !== undefined) return impure(file, seen)
        if (/^(node|bun):/.test(specifier) && !PURE_NODE.includes(specifier))
          return [`${path} → ${specifier}`]
        return []
      })
    }
    expect(
      breaches(source => (PURE.includes(layerOf(source.path)) ? impure(source.path, new Set()) : [])),
    ).toEqual([])
  })

  test('policy/ and plan/ name no clock, environment, console or process', () => {
    expect(
      breaches(source => {
        if (!PURE.includes(layerOf(source.path))) return []
        const word = IMPURE_WORDS.exec(source.code)
        return word === null ? [] : [`says ${word[0]}`]
      }),
    ).toEqual([])
  })

  test('Bun’s own API stays where the supervisor runs: the library also runs on Node', () => {
    expect(
      breaches(source => {
        if (
          KEEPER.includes(layerOf(source.path)) ||
          [...ASKS_FIRST, ...BENEATH_THE_KEEPER, ENTRY].includes(source.path)
        )
          return []
        const bun = source.imports
          .filter(({ specifier }) => /^bun(:|$)/.test(specifier))
          .map(i => i.specifier)
        return [...bun, ...(/\bBun\./.test(source.code) ? ['Bun.'] : [])].map(word => `uses ${word}`)
      }),
    ).toEqual([])
  })

  test('what a program imports with the library runs on Node: no API of Bun’s, and no package', () => {
    const reached = new Set<string>()
    const walk = (path: string): void => {
      if (reached.has(path)) return
      reached.add(path)
      for (const { file, typeOnly } of byPath.get(path)?.imports ?? [])
        if (file !== undefined && !typeOnly) walk(file)
    }
    walk('src/index.ts')
    expect(reached.has('src/library/sandbox.ts') && reached.has('src/protocol/frame.ts')).toBe(true)
    // Promise.withResolvers and others came after Node 20.
    const words = /\b(Bun\.|Promise\.withResolvers|Promise\.try|Array\.fromAsync|import\.meta\.dir)/
    expect(
      [...reached].flatMap(path => {
        const { code = '', imports = [] } = byPath.get(path) ?? {}
        const foreign = imports.filter(
          ({ file, specifier }) => file === undefined && !/^node:/.test(specifier),
        )
        return [words.exec(code)?.[0] ?? [], foreign.map(({ specifier }) => specifier)]
          .flat()
          .map(word => `${path} uses ${word}`)
      }),
    ).toEqual([])
  })

  test('nothing outside backend/ compares a backend’s name: it asks for capabilities', () => {
    const names = 'process|podman|docker|vm|apple|soft|kubernetes'
    const compare = new RegExp(
      `\\bbackend(\\.name|Name)?\\s*[!=]==?\\s*['"](${names})['"]|case '(podman|docker|apple|kubernetes)'`,
    )
    expect(
      breaches(source => {
        if (layerOf(source.path) === 'backend') return []
        const found = compare.exec(source.text)
        return found === null ? [] : [`says ${found[0]}`]
      }),
    ).toEqual([])
  })
})
