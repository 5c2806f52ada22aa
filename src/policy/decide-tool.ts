/**
 * The verdict on running one program where no mount decides which programs are there: the gate of a soft sandbox asks here.
 * Elsewhere an absent `tools.allow` means the programs that the mounts show. Here nothing is shown, so it means none.
 */
import type { Policy } from './policy.ts'
import { isFromUser, type Source, showSource } from './source.ts'

export interface Tool {
  /** By which it stands among the system's programs; undefined for a file from anywhere else. */
  readonly name: string | undefined
  /** A shell itself, or a script for one. */
  readonly shell: boolean
}

/** Whose wish it is: what the user typed at pen is a choice, what an agent asks for is a request. */
export type ChosenBy = 'user' | 'agent'

export type ToolDenial = 'shell-off' | 'not-listed'

export type ToolVerdict =
  | { readonly ok: true; readonly rule: string; readonly from: string }
  | { readonly ok: false; readonly reason: ToolDenial; readonly why: string; readonly fix: string }

export function decideTool(
  { tools, sources }: Pick<Policy, 'tools' | 'sources'>,
  tool: Tool,
  chosenBy: ChosenBy,
): ToolVerdict {
  if (tool.shell && !tools.shell) return refuse('shell-off', 'it is a shell, and tools.shell is false', SHELL)
  const shell = sources.get('tools.shell')
  if (tool.shell && !isFromUser(shell))
    return refuse(
      'shell-off',
      'it is a shell, and without a wall around it no profile allows one: tools.shell has to be set by you',
      SHELL,
    )
  if (tools.allow !== 'shown') {
    const listed = sources.get('tools.allow')
    if (tool.name === undefined || !tools.allow.includes(tool.name))
      return refuse('not-listed', 'it is not among the tools that the policy lists', LIST)
    // A list that only the project wrote takes away where mounts show programs. It grants nothing.
    if (chosenBy === 'user' || isFromUser(listed))
      return { ok: true, rule: `tools.allow ${tool.name}`, from: from(listed) }
  }
  if (chosenBy === 'user') return { ok: true, rule: 'the command itself', from: 'command line' }
  return refuse('not-listed', 'you have listed no tools, and absence denies', LIST)
}

const SHELL = 'pen config set tools.shell true, if you mean it'
const LIST = 'pen config set tools.allow NAME …, with the names of all that may run'

const from = (source: Source | undefined): string => (source === undefined ? 'default' : showSource(source))

const refuse = (reason: ToolDenial, why: string, fix: string): ToolVerdict => ({
  ok: false,
  reason,
  why,
  fix,
})
