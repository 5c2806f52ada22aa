/**
 * The verdict on one tool call of an agent on the host. The call is the model's, and hostile: its command becomes one quoted
 * word, and its paths are judged by the project's policy.
 */
import { resolve } from '../base/posix-path.ts'
import { asWord, quoteWord } from '../base/printable.ts'
import { explainPath } from '../policy/explain-path.ts'
import type { FileAccess } from '../policy/files/decide-file.ts'
import { type HostPath, isWithin, type PathWorld } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { HookedAgent } from './agents.ts'

export interface ToolCall {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
}

export type Verdict =
  /** The tool is not pen's business, or its path is allowed. */
  | { readonly kind: 'pass' }
  | { readonly kind: 'rewrite'; readonly input: Readonly<Record<string, unknown>> }
  | { readonly kind: 'refuse'; readonly why: string }

export interface CallContext {
  readonly agent: HookedAgent
  /** The words that start pen. */
  readonly pen: readonly string[]
  readonly world: PathWorld
  readonly cwd: HostPath
  /** Directories of the agent's own that it may read, outside of the project. */
  readonly own: readonly string[]
  /** Loaded only for file tools: a shell command must not wait for it. */
  policy(): Promise<Policy>
}

const PASS = { kind: 'pass' } as const
const refuse = (why: string): Verdict => ({ kind: 'refuse', why: `pen refused: ${why}` })

export async function judgeCall({ tool, input }: ToolCall, context: CallContext): Promise<Verdict> {
  const { agent } = context
  const { command } = input
  if (agent.shell.includes(tool))
    return typeof command === 'string' ? intoSandbox(command, input, context) : refuse('no command')
  const instead = Object.hasOwn(agent.refused, tool) ? agent.refused[tool] : undefined
  if (instead !== undefined) return refuse(`${tool} would see files that the policy hides; fix: ${instead}`)
  if (agent.patches.includes(tool)) return await judgePaths(patchedPaths(input), 'write', context)
  if (agent.writes.includes(tool)) return await judgePaths(pathIn(input), 'write', context)
  if (agent.reads.includes(tool)) return await judgePaths(pathIn(input), 'read', context)
  if (typeof command === 'string' && !tool.startsWith('mcp_'))
    return refuse(`pen does not know the tool ${asWord(tool, 64)}, which takes a command`)
  return PASS
}

/** The beginning of every rewritten command. After `--` no flag of pen is possible. */
export const execWords = (pen: readonly string[], project: string): readonly string[] => [
  ...pen,
  'exec',
  '--project',
  project,
  '--',
]

/** Bash where the sandbox has it, as agents expect. */
const SHELL = 'exec "$(command -v bash || echo sh)" -c "$0"'

function intoSandbox(command: string, input: ToolCall['input'], { pen, world }: CallContext): Verdict {
  if (command.includes('\0')) return refuse('the command has a NUL byte')
  const words = [...execWords(pen, world.workspace), 'sh', '-c', SHELL, command]
  return { kind: 'rewrite', input: { ...input, command: words.map(quoteWord).join(' ') } }
}

const PATH_FIELDS = ['file_path', 'filePath', 'notebook_path', 'absolute_path', 'target_file', 'path']

const pathIn = (input: ToolCall['input']): readonly string[] =>
  PATH_FIELDS.flatMap(field => {
    const path = input[field]
    return typeof path === 'string' ? [path] : []
  })

const PATCHED = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\r?$/gm

function patchedPaths(input: ToolCall['input']): readonly string[] {
  const [text] = ['command', 'patchText', 'patch', 'input'].flatMap(field => input[field] ?? [])
  return typeof text === 'string' ? Array.from(text.matchAll(PATCHED), ([, path = '']) => path) : []
}

/** Agents trim a path, and take it as a mention or an address. pen and the agent must mean the same file. */
const ODD = /^[\s@]|\s$|^file:/

async function judgePaths(
  paths: readonly string[],
  access: FileAccess,
  { own, policy, world, cwd }: CallContext,
): Promise<Verdict> {
  if (paths.length === 0) return refuse('no path of a file')
  for (const path of paths) {
    if (ODD.test(path) || path !== path.normalize('NFC'))
      return refuse(`${asWord(path, 400)} has spaces at its ends, or letters that the agent would change`)
    // Agents try other spellings of an absent name.
    if (access === 'read' && world.locate(resolve(cwd, path)).kind === 'absent')
      return refuse(`${asWord(path, 400)} does not exist`)
    if (access === 'read' && own.some(directory => isWithin(world.locate(path).real, directory))) continue
    const { verdict, why, fix } = explainPath(await policy(), path, access, { world, cwd })
    if (verdict === 'allowed') continue
    const how = fix === null ? '' : `; fix: ${fix}`
    return refuse(`${access} ${asWord(path, 400)}: ${why}${how}`)
  }
  return PASS
}
