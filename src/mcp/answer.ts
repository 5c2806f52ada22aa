/** Tools and their results as the protocol writes them. */
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js'
import { asSandboxError, SandboxError } from '../library/sandbox-error.ts'
import type { Tool, ToolResult } from './tool.ts'

const ERROR = {
  type: 'object',
  description: 'only where the call failed',
  properties: {
    code: { type: 'string' },
    what: { type: 'string' },
    at: { type: 'string' },
    hint: { type: 'string' },
    retry: { type: 'boolean', description: 'whether the same call may succeed later' },
    permission: { type: 'string', description: 'what the user runs on the host to allow it' },
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
  // Nothing is required: the SDK's client checks failed calls by the same schema.
  outputSchema: {
    type: 'object',
    properties: { error: ERROR, ...tool.output },
    additionalProperties: false,
  },
  annotations: {
    title: tool.title,
    readOnlyHint: tool.effect.readOnly,
    destructiveHint: tool.effect.destructive,
    idempotentHint: tool.effect.idempotent,
    openWorldHint: tool.effect.openWorld,
  },
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

/** Whatever went wrong, in words for a model, which has no other way to start a sandbox than to use a tool. */
export function failureOf(thrown: unknown): SandboxError {
  const error = asSandboxError(thrown)
  if (!(error instanceof SandboxError))
    return new SandboxError('INTERNAL', {
      what: `pen failed: ${error.message}`,
      hint: 'tell the user: pen doctor, on the host, looks for what is wrong',
    })
  if (error.code !== 'ENDED') return error
  return new SandboxError('ENDED', {
    what: error.what,
    hint: 'use the tool again: that starts another sandbox; pen logs --all, on the host, tells what ended this one',
  })
}
