// A test program that uses the tools of the examples, which are beside it when it runs, with the real
// frameworks: the AI SDK's own mock model, and LangChain's tools as an agent calls them.
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { Sandbox } from 'pen'
import { aiSdkTools } from './ai-sdk-tools.mjs'
import { langChainTools } from './langchain-tools.mjs'

const CALLS = [
  ['run', { command: 'echo ai; exit 2' }],
  ['run', { command: 'sleep 60', timeoutSeconds: 0.2 }],
  ['run', { command: 'true', timeoutSeconds: 86_400 }],
  ['readFile', { path: 'open.txt' }],
  ['readFile', { path: '.env' }],
]
const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
const usage = { inputTokens: tokens, outputTokens: tokens }
const heard = []
let step = 0
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt, tools }) => {
    heard.push(...prompt.at(-1).content.filter(({ type }) => type === 'tool-result'))
    const isCalling = step++ === 0
    const calls = CALLS.map(([toolName, input], i) => ({
      type: 'tool-call',
      toolCallId: `call-${i}`,
      toolName,
      input: JSON.stringify(input),
    }))
    const seen = tools.map(({ name, inputSchema }) => `${name}(${Object.keys(inputSchema.properties)})`)
    return {
      content: isCalling ? calls : [{ type: 'text', text: seen.join(' ') }],
      finishReason: { unified: isCalling ? 'tool-calls' : 'stop', raw: undefined },
      usage,
      warnings: [],
    }
  },
})

const box = await Sandbox.start({ project: process.argv[2] })
const { text } = await generateText({
  model,
  tools: aiSdkTools(box),
  stopWhen: stepCountIs(2),
  prompt: 'Run it.',
})
const [run, request] = langChainTools(box)
const invoke = async (tool, args) => {
  const { content } = await tool.invoke({ type: 'tool_call', id: 'a', name: tool.name, args })
  return JSON.parse(content)
}
console.log(
  JSON.stringify({
    text,
    heard: heard.map(({ output }) => output.value),
    names: [run.name, request.name],
    chain: await invoke(run, { command: 'echo chain' }),
    asked: await invoke(request, { path: '/etc/shadow', wait_seconds: 0 }),
    wrong: await run.invoke({ type: 'tool_call', id: 'b', name: 'run', args: { command: 7 } }).then(
      ({ content }) => content,
      ({ message }) => message,
    ),
  }),
)
await box.stop()
