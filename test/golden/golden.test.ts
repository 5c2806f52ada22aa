/**
 * One directory per case, readable as documentation:
 *
 *   command                  what is typed, in the project's directory
 *   config.json              the live config; also http-allowlist.txt and network-allowlist.txt beside it
 *   grants/                  what was allowed or denied for a while; file-grants.json, what pen grant granted
 *   agent-permissions.json   what the project asks for
 *   project-config.json      the project's own .pen/config.json, which takes no effect by itself
 *   writes                   files that the command may write, shown at the end; the live config is `live/config.json`
 *   tree                     files and directories of the project: `src/x`, `dir/`, `link -> target`; `~/…` is in the home
 *   env                      variables of the user, NAME=value per line
 *   expected.txt             the output: stdout, then stderr below a line
 *   exit                     the exit code, if it is not 0
 *
 * `UPDATE_GOLDEN=1 bun test test/golden` rewrites the output. Read the diff before you commit it.
 */
import { describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  lstatSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TemporaryProject, temporaryProject } from '../temporary-project.ts'

const HERE = import.meta.dir
const MAIN = join(HERE, '../../src/main.ts')
const cases = readdirSync(HERE, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(entry => entry.name)
  .sort()

const optional = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')
const lines = (text: string): string[] => text.split('\n').filter(line => line !== '')

function setUp(folder: string, project: TemporaryProject): void {
  for (const name of ['config.json', 'http-allowlist.txt', 'network-allowlist.txt', 'file-grants.json'])
    if (existsSync(join(folder, name))) project.writeLive(name, optional(join(folder, name)))
  if (existsSync(join(folder, 'grants')))
    cpSync(join(folder, 'grants'), join(project.stateDir, 'grants'), { recursive: true })
  if (existsSync(join(folder, 'agent-permissions.json')))
    copyFileSync(join(folder, 'agent-permissions.json'), join(project.workspace, 'agent-permissions.json'))
  if (existsSync(join(folder, 'project-config.json')))
    project.write('.pen/config.json', optional(join(folder, 'project-config.json')))
  for (const line of lines(optional(join(folder, 'tree')))) {
    const [name = '', target] = line.split(' -> ')
    const path = name.startsWith('~/') ? join(project.home, name.slice(2)) : join(project.workspace, name)
    mkdirSync(name.endsWith('/') ? path : dirname(path), { recursive: true })
    if (target !== undefined) symlinkSync(target, path)
    else if (!name.endsWith('/')) writeFileSync(path, '')
  }
}

function run(folder: string, project: TemporaryProject) {
  const [pen, ...args] = [
    ...optional(join(folder, 'command'))
      .trim()
      .matchAll(/'([^']*)'|(\S+)/g),
  ].map(([, quoted, plain]) => quoted ?? plain ?? '')
  expect(pen).toBe('pen')
  return Bun.spawnSync([process.execPath, MAIN, ...args], {
    cwd: project.workspace,
    stdin: 'ignore',
    // Nothing of this machine: the output must be the same everywhere.
    env: {
      HOME: project.home,
      PATH: '/usr/local/bin:/usr/bin:/bin',
      TERM: 'dumb',
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
      ...Object.fromEntries(
        lines(optional(join(folder, 'env'))).map(line => line.split(/=(.*)/s).slice(0, 2)),
      ),
    },
  })
}

/**
 * Machines differ in system directories, added authorities, and how limits are enforced. Those lines are
 * dropped, and paths get names.
 */
function normalise(text: string, project: TemporaryProject): string {
  return text
    .replaceAll(project.workspace, '<project>')
    .replaceAll(/project-[0-9a-f]{16}/g, '<id>')
    .replaceAll(project.home, '<home>')
    .replaceAll(/notes\/[0-9a-f]{16}/g, 'notes/<digest>')
    .split('\n')
    .filter(line => !/ \(system\)$|^ +link \/|^weaker: |^ +(no-limit-|refusals-unrecorded)|^ +env NODE_EXTRA_CA_CERTS=/.test(line))
    .map(line =>
      line
        .replace(/(\S) {2,}/g, '$1  ')
        .replace(/user inside: \d+:\d+/, 'user inside: <uid>:<gid>')
        .replace(/env SHELL=.*/, 'env SHELL=<shell>'),
    )
    .join('\n')
    .replace(/^gaps:\n(?! )/m, 'gaps: none\n')
}

/** The files that a case may write, by their path below the root. A line that ends in … is not shown. */
function writable(folder: string, project: TemporaryProject) {
  const root = (path: string) => path.slice(project.root.length + 1)
  return lines(optional(join(folder, 'writes'))).map(line => {
    const name = line.replace(/ …$/, '')
    const path = name.startsWith('live/')
      ? join(project.stateDir, name.slice(5))
      : join(project.workspace, name)
    return { name, path, at: [root(path), root(dirname(path))], isShown: name === line }
  })
}

/** Every file, link and directory, with its content: a pen command that only reads must leave them unchanged. */
/** Links are not followed: their targets do not belong to the case, and may change. */
function snapshot(root: string, below = ''): Map<string, string> {
  const out = new Map<string, string>()
  for (const name of readdirSync(join(root, below))) {
    const path = join(root, below, name)
    const at = join(below, name)
    const entry = lstatSync(path)
    if (entry.isSymbolicLink()) out.set(at, readlinkSync(path))
    else out.set(at, entry.isFile() ? `${entry.mode} ${readFileSync(path, 'base64')}` : String(entry.mode))
    if (entry.isDirectory()) for (const [inner, what] of snapshot(root, at)) out.set(inner, what)
  }
  return out
}

describe('golden', () => {
  test.each(cases)('%s', name => {
    using project = temporaryProject()
    const folder = join(HERE, name)
    setUp(folder, project)
    const before = snapshot(project.root)

    const { stdout, stderr, exitCode } = run(folder, project)
    const err = stderr.toString()
    const writes = writable(folder, project)
    const written = writes
      .filter(({ isShown }) => isShown)
      .map(({ name: file, path }) => `--- ${file}\n${optional(path)}`)
    const out = normalise(
      stdout.toString() + (err === '' ? '' : `--- stderr\n${err}`) + written.join(''),
      project,
    )
    if (process.env['UPDATE_GOLDEN'] === '1') {
      writeFileSync(join(folder, 'expected.txt'), out)
      if (exitCode !== 0) writeFileSync(join(folder, 'exit'), `${exitCode}\n`)
    }
    expect(out).toBe(optional(join(folder, 'expected.txt')))
    expect(exitCode).toBe(Number(optional(join(folder, 'exit')).trim()))
    expect(out).not.toMatch(/^\s+at .*(\.ts:|node:|native)/m)

    const after = snapshot(project.root)
    const expected = new Set(writes.flatMap(({ at }) => at))
    for (const [path, content] of before)
      if (!expected.has(path)) expect([path, after.get(path)]).toEqual([path, content])
    const fresh = [...after.keys()].filter(path => !before.has(path) && !expected.has(path))
    expect(fresh.filter(path => !/^home\/\.pen(\/|$)/.test(path))).toEqual([])
  })
})
