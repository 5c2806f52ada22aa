/**
 * The verdict on running one program in a soft sandbox, where no mount limits which programs exist.
 * With mounts, an absent `tools.allow` means every mounted program. A soft sandbox mounts nothing, so there it means none.
 */
import type { Policy } from './policy.ts'
import { isFromUser, type Source, showSource } from './source.ts'

export interface Tool {
  /** The program's name in a system directory; undefined for a file from anywhere else. */
  readonly name: string | undefined
  /** True for a shell and for a script that a shell runs. */
  readonly shell: boolean
}

/** Who asked: the user typed the command, or an agent requested it. */
export type ChosenBy = 'user' | 'agent'

type ToolDenial = 'shell-off' | 'not-listed'

type ToolVerdict =
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
      'it is a shell, and soft isolation runs one only when your own config sets tools.shell',
      SHELL,
    )
  if (tools.allow !== 'shown') {
    const listed = sources.get('tools.allow')
    if (tool.name === undefined || !tools.allow.includes(tool.name))
      return refuse('not-listed', 'it is not among the tools that the policy lists', LIST)
    // A list from the project alone only restricts what mounts show. It grants nothing.
    if (chosenBy === 'user' || isFromUser(listed))
      return { ok: true, rule: `tools.allow ${tool.name}`, from: from(listed) }
  }
  if (chosenBy === 'user') return { ok: true, rule: 'the command itself', from: 'command line' }
  return refuse('not-listed', 'you have listed no tools, and absence denies', LIST)
}

const SHELL = 'pen config set tools.shell true'
const LIST = 'pen config set tools.allow NAME …, with every program that may run'

const from = (source: Source | undefined): string => (source === undefined ? 'default' : showSource(source))

const refuse = (reason: ToolDenial, why: string, fix: string): ToolVerdict => ({
  ok: false,
  reason,
  why,
  fix,
})
