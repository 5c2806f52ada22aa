// Tools for LangChain (`@langchain/core`, version 1): pass what this returns to createAgent() or bindTools().
import { tool } from '@langchain/core/tools'
import { SandboxError } from 'pen'

export const langChainTools = box => [
  tool(
    ({ command, timeout_seconds = 120 }, { signal } = {}) =>
      told(() => box.exec(command, { timeout: timeout_seconds * 1000, maxOutput: 20_000, signal })),
    {
      name: 'run',
      description:
        'Run a shell command in the sandbox of the project. Refusals name the command that would allow them.',
      schema: {
        type: 'object',
        properties: { command: { type: 'string' }, timeout_seconds: { type: 'number' } },
        required: ['command'],
      },
    },
  ),
  tool(
    ({ host, path, wait_seconds = 60 }, { signal } = {}) =>
      told(() => box.requestPermission({ host, path }, { wait: wait_seconds * 1000, signal })),
    {
      name: 'request_permission',
      description:
        'Ask the user to let the sandbox reach a host (host:port), or read a file outside of the project',
      schema: {
        type: 'object',
        properties: { host: { type: 'string' }, path: { type: 'string' }, wait_seconds: { type: 'number' } },
      },
    },
  ),
]

/** A refusal is an answer, not a crash: the model reads why, and what the user can do about it. */
async function told(work) {
  try {
    return JSON.stringify(await work())
  } catch (error) {
    if (error instanceof SandboxError) return error.explain()
    throw error
  }
}
