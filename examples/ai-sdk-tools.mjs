// Tools for the Vercel AI SDK (`ai`, version 6): pass what this returns as `tools` to generateText or streamText.
//
//   const box = await Sandbox.start({ project: '/home/you/project' })
//   await generateText({ model, tools: aiSdkTools(box), stopWhen: stepCountIs(20), prompt: 'Run the tests.' })
import { jsonSchema, tool } from 'ai'
import { SandboxError } from 'pen'

export const aiSdkTools = box => ({
  run: tool({
    description: 'Run a shell command in the sandbox of the project',
    inputSchema: jsonSchema({
      type: 'object',
      properties: {
        command: { type: 'string' },
        timeoutSeconds: { type: 'number', description: '120 where nothing is said' },
      },
      required: ['command'],
      additionalProperties: false,
    }),
    // The SDK passes its own signal: a cancelled generation ends the command.
    execute: ({ command, timeoutSeconds = 120 }, { abortSignal }) =>
      told(() =>
        box.exec(command, { timeout: timeoutSeconds * 1000, maxOutput: 20_000, signal: abortSignal }),
      ),
  }),
  readFile: tool({
    description: 'Read a file as the sandbox has it',
    inputSchema: jsonSchema({
      type: 'object',
      properties: { path: { type: 'string' } },
      required: ['path'],
      additionalProperties: false,
    }),
    execute: ({ path }) =>
      told(async () => ({ content: await box.files.readText(path, { length: 100_000 }) })),
  }),
})

/** A refusal is an answer, not a crash: the model reads why, and what the user can do about it. */
async function told(work) {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SandboxError) return { error: error.explain() }
    throw error
  }
}
