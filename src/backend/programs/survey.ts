/** The programs of a system, as far as a policy needs them that lists its tools or disables the shell. */
import { basename, dirname } from '../../base/posix-path.ts'
import type { FoundTool, SystemEntry, ToolFacts } from '../../plan/facts.ts'
import { isShellName } from '../../plan/system-view.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import type { ProgramFiles } from './files.ts'
import { follow, inDirectory } from './follow.ts'
import { findShells, NO_SHELLS, type Shells } from './shells.ts'

export const NO_TOOL_FACTS: ToolFacts = {
  directories: [],
  strays: [],
  found: [],
  missing: [],
  shells: [],
  setsid: undefined,
}

export interface Surveyed {
  readonly files: ProgramFiles
  readonly system: readonly SystemEntry[]
  /** Directories that hold only programs. */
  readonly directories: readonly string[]
  /** Directories of the PATH that hold other files too. */
  readonly mixed: readonly string[]
  /** Directories of programs inside a mixed one. */
  readonly nested?: readonly string[]
  /** The order in which names are looked up. */
  readonly search: readonly string[]
}

/** True when a policy restricts tools, so that a survey is needed. */
export const restrictsTools = (tools: Policy['tools']): boolean => tools.allow !== 'shown' || !tools.shell

/** Takes a few milliseconds, whatever the size of the project. */
export function surveyTools(tools: Policy['tools'], surveyed: Surveyed): ToolFacts {
  const { files, directories, mixed, nested = [] } = surveyed
  const shells = tools.shell ? NO_SHELLS : findShells(files, [...directories, ...nested, ...mixed])
  if (tools.allow === 'shown') return { ...NO_TOOL_FACTS, directories, shells: shells.files }
  const found = new Map<string, FoundTool>()
  const missing: string[] = []
  for (const name of new Set(tools.allow)) {
    const tool = find(name, surveyed, shells)
    if (tool === undefined) missing.push(name)
    else found.set(name, tool)
  }
  const env = [...found.values()].some(tool => tool.needs !== undefined && startedByEnv(files, tool))
  if (env && !found.has('env')) {
    const tool = find('env', surveyed, shells)
    if (tool !== undefined) found.set('env', { ...tool, implied: true })
  }
  return {
    ...NO_TOOL_FACTS,
    directories,
    strays: mixed.flatMap(directory => programsIn(files, directory)),
    found: [...found.values()],
    missing,
    shells: shells.files,
  }
}

function find(name: string, { files, search, system }: Surveyed, shells: Shells): FoundTool | undefined {
  for (const directory of search) {
    const chain = follow(files, inDirectory(directory, name))
    if (chain === undefined || (chain.status.mode & 0o111) === 0) continue
    const names = [name, ...chain.links.map(link => basename(link.at)), basename(chain.file)]
    const head = files.head(chain.file)
    return {
      name,
      links: chain.links,
      file: chain.file,
      shell: names.some(isShellName) || shells.has(chain.file),
      needs: head.kind === 'script' ? interpreterName(head) : undefined,
      implied: false,
      companions: [...loaderOf(files, chain.file), ...companions(names, chain.file, files, system)],
    }
  }
  return undefined
}

/** What the kernel executes together with a program that is not a script. */
function loaderOf(files: ProgramFiles, file: string): string[] {
  const head = files.head(file)
  if (head.kind !== 'native' || head.loader === undefined) return []
  const real = files.real(head.loader)
  return real === undefined ? [] : [real]
}

function programsIn(files: ProgramFiles, directory: string): string[] {
  return files.list(directory).flatMap(({ name }) => {
    const chain = follow(files, inDirectory(directory, name))
    return chain !== undefined && (chain.status.mode & 0o111) !== 0 ? [chain.file] : []
  })
}

const startedByEnv = (files: ProgramFiles, tool: FoundTool): boolean => {
  const head = files.head(tool.file)
  return head.kind === 'script' && basename(head.interpreter) === 'env'
}

function interpreterName(head: { interpreter: string; argument: string }): string | undefined {
  if (basename(head.interpreter) !== 'env') return basename(head.interpreter)
  const word = head.argument.split(/[ \t]+/).find(part => part !== '' && !/^-|=/.test(part))
  return word === undefined ? undefined : basename(word)
}

/** One compiler under many names. */
const FAMILY: Readonly<Record<string, string>> = { cc: 'gcc', 'c++': 'gcc', 'g++': 'gcc', cpp: 'gcc' }

/** Directories of programs that belong to one tool: `git-core`, a compiler's passes, the tree of a toolchain. */
function companions(
  names: readonly string[],
  file: string,
  files: ProgramFiles,
  system: readonly SystemEntry[],
): string[] {
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
  return [...own, ...(brought ? [tree] : [])].filter(path => {
    const real = files.real(path)
    return real !== undefined && files.look(real)?.kind === 'directory'
  })
}
