// Tools for LangChain: each is what its tool() takes, a function and its fields.
//
//   import { tool } from '@langchain/core/tools'
//   const tools = langChainTools(box).map(([work, fields]) => tool(work, fields))
import { SandboxError } from 'pen'

export const langChainTools = box => [
  [
    async ({ command, timeout_seconds = 120 }, { signal } = {}) => {
      try {
        const result = await box.exec(command, { timeout: timeout_seconds * 1000, maxOutput: 20_000, signal })
        return JSON.stringify(result)
      } catch (error) {
        if (error instanceof SandboxError) return error.explain()
        throw error
      }
    },
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
  ],
  [
    async ({ host, path, wait_seconds = 60 }) => {
      const answer = await box.requestPermission({ host, path }, { wait: wait_seconds * 1000 })
      return JSON.stringify(answer)
    },
    {
      name: 'request_permission',
      description:
        'Ask the user to let the sandbox reach a host (host:port), or read a file outside of the project',
      schema: {
        type: 'object',
        properties: { host: { type: 'string' }, path: { type: 'string' }, wait_seconds: { type: 'number' } },
      },
    },
  ],
]
