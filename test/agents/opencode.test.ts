import { ANTHROPIC } from './mock-anthropic.ts'
import { claimPreset, KEY } from './preset-claim.ts'

claimPreset({
  agent: 'opencode',
  protocol: ANTHROPIC,
  shell: command => ({ name: 'bash', input: { command, description: 'a test' } }),
  write: (path, content) => ({ name: 'write', input: { filePath: path, content } }),
  words: ['run', '--model', 'anthropic/claude-sonnet-4-5', 'do it'],
  variables: ({ address }) => ({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: `${address}/v1` }),
})
