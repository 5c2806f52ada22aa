/** Explains why a program is absent when the tool policy hides it. */
import type { ExecEnding, Running } from '../backend/backend.ts'
import { isProgramDirectory } from '../backend/programs/directories.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { isShellName } from '../plan/system-view.ts'
import type { Policy } from '../policy/policy.ts'

export type Taken = 'no shell' | 'not listed'

export const inWords = (name: string, taken: Taken): { readonly what: string; readonly hint: string } =>
  taken === 'no shell'
    ? {
        what: `${name} is a shell, and this policy has none (tools.shell is false)`,
        hint: 'name the program to run: pen run -- COMMAND',
      }
    : {
        what: `${name} is not among the tools that this policy lists`,
        hint: `add it to tools.allow; \`pen plan\` shows the list and where it came from`,
      }

const UNNAMED = {
  what: 'a shell was asked for, and this policy has none (tools.shell is false)',
  hint: 'name the program to run: pen exec -- COMMAND',
}

/** Adds the reason to a command of an agent that could not be started because the tool policy hides it. */
export function withReasons(running: Running, tools: Policy['tools']): Running {
  const { exec, judges = false } = running
  if (exec === undefined || judges || (tools.allow === 'shown' && tools.shell && tools.exec === 'any'))
    return running
  return {
    ...running,
    exec: (order, output) => {
      const execution = exec(order, output)
      return {
        write: bytes => execution.write(bytes),
        endInput: () => execution.endInput(),
        resize: (columns, rows) => execution.resize(columns, rows),
        signal: name => execution.signal(name),
        kill: () => execution.kill(),
        ended: execution.ended.then(ending => explained(ending, order.argv[0], tools)),
      }
    },
  }
}

function explained(ending: ExecEnding, name: string | undefined, tools: Policy['tools']): ExecEnding {
  if (ending.kind !== 'not-started' || !['ENOENT', 'EACCES'].includes(ending.errno)) return ending
  const taken = takenAway(name, tools)
  if (taken !== undefined) {
    const { what, hint } = name === undefined ? UNNAMED : inWords(name, taken)
    return { kind: 'not-started', errno: 'ENOENT', reason: `${what}; ${hint}` }
  }
  if (tools.exec === 'any' || ending.errno !== 'EACCES') return ending
  return { ...ending, reason: `${name} could not be executed (EACCES): tools.exec is "listed"` }
}

function takenAway(name: string | undefined, tools: Policy['tools']): Taken | undefined {
  // A file of the project is not a system program.
  if (name?.includes('/') === true && !isProgramDirectory(dirname(name))) return undefined
  if (!tools.shell && (name === undefined || isShellName(basename(name)))) return 'no shell'
  if (name === undefined || tools.allow === 'shown' || tools.allow.includes(basename(name))) return undefined
  return 'not listed'
}
