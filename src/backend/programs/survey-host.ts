import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import type { SystemEntry, ToolFacts } from '../../plan/facts.ts'
import { SYSTEM_PATH } from '../../plan/system-view.ts'
import type { Policy } from '../../policy/policy.ts'
import { findProgramDirectories } from './directories.ts'
import { HOST_FILES } from './files.ts'
import { NO_TOOL_FACTS, restrictsTools, surveyTools } from './survey.ts'

/** Limit of directories. Ordinary systems have a few hundred. */
const MAX_VISITED = 20_000

/** The host's own programs. Does nothing unless the policy restricts tools. */
export function surveyHostTools(
  { tools }: Pick<Policy, 'tools'>,
  system: readonly SystemEntry[],
  /** Searched before the system's directories. */
  path: readonly string[],
): ToolFacts {
  if (!restrictsTools(tools)) return NO_TOOL_FACTS
  const budget = { left: MAX_VISITED }
  const directories = findProgramDirectories(HOST_FILES, system, budget)
  if (budget.left < 0)
    throw new PenError('BACKEND', {
      what: `this system has more than ${MAX_VISITED} directories that may hold programs, and pen cannot hide what it did not survey`,
      hint: 'use a container, whose programs are its image’s: --backend podman; or restrict no tools',
    })
  const search = [...path, ...SYSTEM_PATH]
  const facts = surveyTools(tools, { files: HOST_FILES, system, directories, mixed: [], search })
  return tools.allow === 'shown' ? facts : { ...facts, setsid: findTool('setsid') }
}
