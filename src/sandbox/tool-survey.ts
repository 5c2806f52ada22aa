/** The host's programs, as far as a policy that lists its tools or takes away the shell needs to know them. */
import { existsSync, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { findTool } from '../base/find-tool.ts'
import { readProgramHead } from '../base/program-head.ts'
import type { FoundTool, SystemEntry, ToolFacts } from '../plan/facts.ts'
import { isShellName, SYSTEM_PATH } from '../plan/system-view.ts'
import { isWithin } from '../policy/path.ts'
import type { Policy } from '../policy/policy.ts'
import { findProgramDirectories, namesIn } from './program-directories.ts'

const NOTHING: ToolFacts = { directories: [], found: [], missing: [], shells: [], setsid: undefined }

/** Costs nothing unless the policy restricts tools; then some milliseconds, however large the project. */
export function surveyTools(
  { tools }: Policy,
  system: readonly SystemEntry[],
  path: readonly string[],
): ToolFacts {
  if (tools.allow === 'shown' && tools.shell) return NOTHING
  const directories = findProgramDirectories(system)
  const shells = tools.shell ? [] : findShells(directories)
  if (tools.allow === 'shown') return { ...NOTHING, directories, shells }
  const search = [...path, ...SYSTEM_PATH]
  const found = new Map<string, FoundTool>()
  const missing: string[] = []
  for (const name of new Set(tools.allow)) {
    const tool = find(name, search, system)
    if (tool === undefined) missing.push(name)
    else found.set(name, tool)
  }
  const env = [...found.values()].some(tool => tool.needs !== undefined && startedByEnv(tool))
  if (env && !found.has('env')) {
    const tool = find('env', search, system)
    if (tool !== undefined) found.set('env', { ...tool, implied: true })
  }
  return { directories, found: [...found.values()], missing, shells, setsid: findTool('setsid') }
}

function find(
  name: string,
  search: readonly string[],
  system: readonly SystemEntry[],
): FoundTool | undefined {
  for (const directory of search) {
    const chain = follow(`${directory}/${name}`)
    if (chain === undefined || (chain.stat.mode & 0o111) === 0) continue
    const names = [name, ...chain.links.map(link => basename(link.at)), basename(chain.file)]
    const head = readProgramHead(chain.file)
    const loader = head.kind === 'native' ? head.loader : undefined
    return {
      name,
      links: chain.links,
      file: chain.file,
      shell: names.some(isShellName),
      needs: head.kind === 'script' ? interpreterName(head) : undefined,
      implied: false,
      companions: [...(loader === undefined ? [] : real(loader)), ...companions(names, chain.file, system)],
    }
  }
  return undefined
}

interface Chain {
  readonly links: readonly { readonly at: string; readonly to: string }[]
  readonly file: string
  readonly stat: Stats
}

/** Link by link, each at its place with no link above it, to the file. */
function follow(path: string): Chain | undefined {
  const links: { at: string; to: string }[] = []
  try {
    for (let at = path; links.length < 40; ) {
      at = `${realpathSync(dirname(at))}/${basename(at)}`
      const stat = lstatSync(at)
      if (!stat.isSymbolicLink()) return stat.isFile() ? { links, file: at, stat } : undefined
      const to = readlinkSync(at)
      links.push({ at, to })
      at = resolve(dirname(at), to)
    }
  } catch {
    // Absent, dangling or not ours to read: not a tool of this machine.
  }
  return undefined
}

const startedByEnv = (tool: FoundTool): boolean => {
  const head = readProgramHead(tool.file)
  return head.kind === 'script' && basename(head.interpreter) === 'env'
}

function interpreterName(head: { interpreter: string; argument: string }): string | undefined {
  if (basename(head.interpreter) !== 'env') return basename(head.interpreter)
  const word = head.argument.split(/[ \t]+/).find(part => part !== '' && !/^-|=/.test(part))
  return word === undefined ? undefined : basename(word)
}

function real(path: string): string[] {
  try {
    return [realpathSync(path)]
  } catch {
    return []
  }
}

/** One compiler under many names. */
const FAMILY: Readonly<Record<string, string>> = { cc: 'gcc', 'c++': 'gcc', 'g++': 'gcc', cpp: 'gcc' }

/** Directories of programs that belong to one tool: `git-core`, a compiler's passes, the tree that a toolchain came in. */
function companions(names: readonly string[], file: string, system: readonly SystemEntry[]): string[] {
  const bases = names.map(name => name.replace(/^.*-linux-[a-z]+-/, '').replace(/-\d[\d.]*$/, ''))
  const parts = new Set([...bases, ...bases.flatMap(base => FAMILY[base] ?? [])])
  const own = ['/usr/lib', '/usr/libexec'].flatMap(top =>
    [...parts].flatMap(part => [`${top}/${part}`, `${top}/${part}-core`]),
  )
  const tree = dirname(dirname(file))
  const trees = system.flatMap(entry => (entry.kind === 'tree' ? [entry.path as string] : []))
  const brought =
    basename(dirname(file)) === 'bin' &&
    !['/usr', '/usr/local', ...trees].includes(tree) &&
    trees.some(top => isWithin(tree, top))
  return [...own, ...(brought ? [tree] : [])].filter(path => existsSync(path) && statSync(path).isDirectory())
}

/** By name, by link, and by hard link: what is covered is the file itself, so every way to it is closed. */
function findShells(directories: readonly string[]): string[] {
  const out = new Set<string>()
  const linked = new Set<string>()
  for (const directory of directories)
    for (const name of namesIn(directory)) {
      if (!isShellName(name)) continue
      const shell = follow(`${directory}/${name}`)
      if (shell === undefined) continue
      out.add(shell.file)
      if (shell.stat.nlink > 1) linked.add(`${shell.stat.dev} ${shell.stat.ino}`)
    }
  if (linked.size > 0)
    for (const directory of directories)
      for (const name of namesIn(directory)) {
        const stat = lstatSync(`${directory}/${name}`, { throwIfNoEntry: false })
        if (stat?.isFile() && linked.has(`${stat.dev} ${stat.ino}`)) out.add(`${directory}/${name}`)
      }
  return [...out]
}
