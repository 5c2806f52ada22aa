/**
 * The hidden mode that agents call before each tool call. Exit code 0 with an answer on stdout, or a failure, which the line
 * in the agent's settings turns into a refusal.
 */
import { text } from 'node:stream/consumers'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { ownProgram } from '../base/own-program.ts'
import { dirname } from '../base/posix-path.ts'
import { loadPolicy } from '../config/load.ts'
import { locate } from '../config/locate.ts'
import { findProject } from '../config/project.ts'
import type { HostPath } from '../policy/files/path.ts'
import { HOOKED_AGENTS, type HookedName, isHookedName } from './agents.ts'
import { judgeCall, type Verdict } from './judge-call.ts'

/** Agents wait for a minute, and then run the command as if there were no hook. */
const LONGEST_MS = 10_000

/** `__hook AGENT [PROJECT]`, with the tool call as JSON on stdin. */
export async function answerHook(words: readonly string[]): Promise<ExitCode> {
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new PenError('STATE', { what: 'this machine was too slow to judge the call' })),
      LONGEST_MS,
    )
  })
  try {
    const answer = await Promise.race([answerTo(words), late])
    if (answer !== undefined) process.stdout.write(`${JSON.stringify(answer)}\n`)
    return EXIT.ok
  } finally {
    clearTimeout(timer)
  }
}

async function answerTo([name = '', directory]: readonly string[]): Promise<object | undefined> {
  if (!isHookedName(name)) throw new PenError('USAGE', { what: `no agent "${name}"` })
  const call = readCall(await text(process.stdin))
  return inFormat(name, await judge(name, call, directory))
}

interface Call {
  readonly tool_name: string
  readonly tool_input: Readonly<Record<string, unknown>>
  readonly cwd?: unknown
  readonly transcript_path?: unknown
}

function readCall(text: string): Call {
  const call: unknown = JSON.parse(text)
  const { tool_name, tool_input } = (call ?? {}) as Partial<Call>
  if (typeof tool_name !== 'string' || typeof tool_input !== 'object' || tool_input === null)
    throw new PenError('USAGE', {
      what: 'the agent sent no tool call that pen can read',
      hint: 'pen hook --remove',
    })
  return call as Call
}

/** A directory that can be no project is a refusal that the model reads, with the fix. */
async function judge(name: HookedName, call: Call, directory: string | undefined): Promise<Verdict> {
  const agent = HOOKED_AGENTS[name]
  try {
    const at = typeof call.cwd === 'string' ? call.cwd : undefined
    const project = findProject(directory ?? at)
    const { transcript_path: transcript } = call
    return await judgeCall(
      { tool: call.tool_name, input: call.tool_input },
      {
        agent,
        pen: ownProgram(),
        world: project.world,
        cwd: at === undefined ? project.world.workspace : (locate(at).real as HostPath),
        // Claude Code reads long results of commands there. No sandbox can write it.
        own: name === 'claude-code' && typeof transcript === 'string' ? [dirname(transcript)] : [],
        policy: async () =>
          (
            await loadPolicy(project, {
              flags: {},
              offline: false,
              allowUserExpansion: false,
              grants: 'shown',
            })
          ).policy,
      },
    )
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return {
      kind: 'refuse',
      why: `pen refused: ${error.message}${error.hint === undefined ? '' : `; fix: ${error.hint}`}`,
    }
  }
}

function inFormat(name: HookedName, verdict: Verdict): object | undefined {
  const why = verdict.kind === 'refuse' ? verdict.why : undefined
  const input = verdict.kind === 'rewrite' ? verdict.input : undefined
  // Cursor expects an answer to every call.
  if (name === 'cursor')
    return why !== undefined
      ? { permission: 'deny', user_message: why, agent_message: why }
      : input !== undefined
        ? { permission: 'allow', updated_input: input }
        : {}
  if (verdict.kind === 'pass') return undefined
  if (name === 'opencode') return why === undefined ? { input } : { deny: why }
  if (name === 'gemini')
    return why === undefined
      ? { decision: 'allow', hookSpecificOutput: { hookEventName: 'BeforeTool', tool_input: input } }
      : { decision: 'deny', reason: why }
  return {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      ...(why === undefined
        ? { permissionDecision: 'allow', updatedInput: input }
        : { permissionDecision: 'deny', permissionDecisionReason: why }),
    },
  }
}
