/** Converts tools and their results to messages of the protocol. */
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js'
import { asSandboxError, SandboxError } from '../library/sandbox-error.ts'
import type { Tool, ToolResult } from './tool.ts'

const ERROR = {
  type: 'object',
  description: 'only if the call failed',
  properties: {
    code: { type: 'string' },
    what: { type: 'string' },
    at: { type: 'string' },
    hint: { type: 'string' },
    retry: { type: 'boolean', description: 'whether the same call may succeed later' },
    permission: { type: 'string', description: 'the command that allows it; the user runs it on the host' },
  },
}

export const describeTool = (tool: Tool): ListedTool => ({
  name: tool.name,
  title: tool.title,
  description: tool.description,
  inputSchema: {
    type: 'object',
    properties: { ...tool.properties },
    required: [...tool.required],
    additionalProperties: false,
  },
  // Nothing is required: the SDK's client checks failed calls against the same schema.
  outputSchema: {
    type: 'object',
    properties: { error: ERROR, ...tool.output },
    additionalProperties: false,
  },
  annotations: { title: tool.title, ...tool.effect },
})

export function answerOf({ texts, facts, failed = false, error }: ToolResult): CallToolResult {
  const all = error === undefined ? texts : [error.explain(), ...texts]
  return {
    content: all.map(text => ({ type: 'text', text })),
    structuredContent: error === undefined ? facts : { error: errorFacts(error), ...facts },
    isError: failed || error !== undefined,
  }
}

function errorFacts({ code, what, at, hint, retry, permission }: SandboxError): object {
  return { code, what, at, hint, retry, permission }
}

/** Converts an error for a model. A model can start a sandbox only by using a tool. */
export function failureOf(thrown: unknown): SandboxError {
  const error = asSandboxError(thrown)
  if (!(error instanceof SandboxError))
    return new SandboxError('INTERNAL', {
      what: `pen failed: ${error.message}`,
      hint: 'ask the user to run pen doctor on the host',
    })
  if (error.code !== 'ENDED') return error
  return new SandboxError('ENDED', {
    what: error.what,
    hint: 'use the tool again: it starts a new sandbox; pen logs --all on the host shows what ended this one',
  })
}
