/**
 * The architecture, as a table. Data flows one way: config → policy → plan → backend → run.
 * A folder may import itself and the folders that its row names. A row names only folders above it, so no two
 * folders import each other.
 */
import { describe, expect, test } from 'bun:test'
import { type Source, sources } from './sources.ts'

const LAYERS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  // Frames and messages between the host and the guest.
  protocol: ['base'],
  // Pure: no I/O, no clock, no environment. The gateway, the file broker and `pen policy explain` share these verdicts.
  policy: ['base'],
  plan: ['policy', 'base'],
  // Disk to text with positions, and back.
  config: ['policy', 'base'],
  audit: ['policy', 'base'],
  // The one way out and the file server. Both ask policy/, and record before they act.
  gateway: ['audit', 'policy', 'protocol', 'base'],
  'file-broker': ['audit', 'policy', 'protocol', 'base'],
  // The host's SSH agent, filtered for one sandbox.
  'ssh-agent': ['audit', 'policy', 'protocol', 'base'],
  // What a sandbox may use up: cgroups, rlimits, watchdogs.
  limits: ['plan', 'policy', 'base'],
  // Turns a plan into a running sandbox. Nothing outside knows a backend by name.
  backend: ['limits', 'gateway', 'audit', 'plan', 'policy', 'protocol', 'base'],
  // ptys, terminal modes and what a sandbox may print.
  terminal: ['backend', 'protocol', 'base'],
  // Recipes and builds: what a container's file system is made from.
  image: ['backend', 'limits', 'gateway', 'audit', 'config', 'plan', 'policy', 'base'],
  // The hooks of agents that run on the host.
  hooks: ['config', 'policy', 'base'],
  // What is on the host before a sandbox starts. Only looks.
  survey: ['backend', 'config', 'plan', 'policy', 'base'],
  // The sandbox's own git directory, and its sync with the host's.
  repository: ['survey', 'backend', 'audit', 'config', 'plan', 'policy', 'base'],
  // What a sandbox changed, kept aside until the user accepts it.
  review: ['repository', 'survey', 'backend', 'audit', 'config', 'plan', 'policy', 'base'],
  // Holds, watches and quarantines places while a sandbox runs.
  protect: ['survey', 'backend', 'audit', 'config', 'policy', 'base'],
  // The socket between commands and a supervisor, and the state on disk that leads to it.
  control: ['backend', 'limits', 'gateway', 'config', 'policy', 'protocol', 'base'],
  // Host names and keys for SSH into sandboxes, and the line in the user's SSH config.
  ssh: ['config', 'policy', 'base'],
  // The pipeline of one sandbox: load, survey, plan, start, supervise, clean up.
  run: [
    'ssh-agent',
    'control',
    'protect',
    'review',
    'repository',
    'survey',
    'image',
    'terminal',
    'backend',
    'limits',
    'file-broker',
    'gateway',
    'audit',
    'config',
    'plan',
    'policy',
    'protocol',
    'base',
  ],
  // Sandboxes that stay: start, stop, list, collect garbage, uninstall.
  lifecycle: [
    'hooks',
    'ssh',
    'run',
    'control',
    'protect',
    'review',
    'image',
    'backend',
    'limits',
    'audit',
    'config',
    'policy',
    'base',
  ],
  // The SSH server of one connection. It runs outside, and only `ssh` starts it.
  'ssh-server': [
    'lifecycle',
    'run',
    'ssh',
    'control',
    'terminal',
    'backend',
    'config',
    'policy',
    'protocol',
    'base',
  ],
  // pen's own program inside a sandbox. Whatever it carries is in hostile hands, so it carries little.
  guest: ['protocol', 'base'],
  // A sandbox as a value, for programs on Node and Bun. It starts the pen binary and talks to its supervisor.
  library: ['lifecycle', 'run', 'control', 'terminal', 'backend', 'gateway', 'audit', 'protocol', 'base'],
  // Tools for a model, over the library. Loaded by `pen mcp` alone.
  mcp: ['library', 'base'],
  // Tries the parts of a sandbox one by one, each by the code that a run would use.
  doctor: ['run', 'survey', 'backend', 'limits', 'gateway', 'audit', 'config', 'plan', 'policy', 'base'],
  cli: [
    'mcp',
    'doctor',
    'hooks',
    'guest',
    'lifecycle',
    'ssh',
    'run',
    'control',
    'review',
    'repository',
    'survey',
    'image',
    'terminal',
    'backend',
    'gateway',
    'audit',
    'config',
    'plan',
    'policy',
    'protocol',
    'base',
  ],
}

/** Runtime packages that may be imported, and from where. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  valibot: ['policy', 'config'],
  'tldts-icann': ['policy', 'config'],
  '@modelcontextprotocol/sdk': ['mcp'],
  ssh2: ['ssh', 'ssh-server'],
}

/** Folders that run only in the pen binary, which is Bun. */
const BINARY_ONLY = [
  'backend',
  'control',
  'doctor',
  'file-broker',
  'gateway',
  'guest',
  'image',
  'lifecycle',
  'limits',
  'protect',
  'repository',
  'review',
  'run',
  'ssh',
  'ssh-agent',
  'ssh-server',
  'survey',
  'terminal',
]
/** Uses Bun where Bun runs, and Node elsewhere; and files that only verbs load, never the library. */
const EITHER_RUNTIME = [
  'src/base/sha256.ts',
  'src/config/lock.ts',
  'src/base/start-program.ts',
  'src/base/spawn.ts',
]
/** System calls, for the folders above. The library imports none of it. */
const BINARY_ONLY_BASE = /^src\/base\/(kernel|beneath)\//
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

  test('a row names only rows above it, so folders form layers', () => {
    const rows = Object.keys(LAYERS).filter(row => row !== 'cli' && row !== 'mcp')
    expect(
      rows.flatMap((row, at) =>
        (LAYERS[row] ?? []).filter(named => rows.indexOf(named) >= at).map(named => `${row} names ${named}`),
      ),
    ).toEqual([])
  })

  test('only main.ts imports cli/', () => {
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
        if (BINARY_ONLY.includes(layerOf(source.path)) || BINARY_ONLY_BASE.test(source.path)) return []
        if ([...EITHER_RUNTIME, ENTRY].includes(source.path)) return []
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
    // Promise.withResolvers and others are newer than Node 20.
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

  test('nothing outside backend/ compares the name of a backend, engine or isolation: it asks for a capability', () => {
    const names = 'process|podman|docker|container|gvisor|vm|apple|soft|kubernetes'
    const compare = new RegExp(
      `\\b(isolation|name|(backend|engine)(\\.name|Name)?)\\s*[!=]==?\\s*['"](${names})['"]|\\.container\\s*[!=]==|case '(podman|docker|apple|kubernetes)'`,
    )
    expect(
      breaches(source => {
        // The doctor examines each engine by its name.
        if (['backend', 'doctor'].includes(layerOf(source.path))) return []
        const found = compare.exec(source.text)
        return found === null ? [] : [`says ${found[0]}`]
      }),
    ).toEqual([])
  })
})
