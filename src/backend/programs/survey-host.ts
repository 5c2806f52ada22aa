import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import type { SystemEntry, ToolFacts } from '../../plan/facts.ts'
import { SYSTEM_PATH } from '../../plan/system-view.ts'
import type { Policy } from '../../policy/policy.ts'
import { findProgramDirectories } from './directories.ts'
import { HOST_FILES } from './files.ts'
import { NO_TOOL_FACTS, restrictsTools, surveyTools } from './survey.ts'

/** Directories. Ordinary systems have some hundred. */
const MOST_LOOKED_AT = 20_000

/** The host's own programs. Costs nothing unless the policy restricts tools. */
export function surveyHostTools(
  { tools }: Pick<Policy, 'tools'>,
  system: readonly SystemEntry[],
  /** Looked through before the system's. */
  path: readonly string[],
): ToolFacts {
  if (!restrictsTools(tools)) return NO_TOOL_FACTS
  const budget = { left: MOST_LOOKED_AT }
  const directories = findProgramDirectories(HOST_FILES, system, budget)
  if (budget.left < 0)
    throw new PenError('BACKEND', {
      what: `this system has more than ${MOST_LOOKED_AT} directories in which programs may be, and pen cannot hide what it did not look at`,
      hint: 'take a container, whose programs are its image’s: --backend podman; or restrict no tools',
    })
  const search = [...path, ...SYSTEM_PATH]
  const facts = surveyTools(tools, { files: HOST_FILES, system, directories, mixed: [], search })
  return tools.allow === 'shown' ? facts : { ...facts, setsid: findTool('setsid') }
}
