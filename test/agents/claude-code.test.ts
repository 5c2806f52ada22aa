import { ANTHROPIC } from './mock-anthropic.ts'
import { claimPreset, KEY } from './preset-claim.ts'

claimPreset({
  agent: 'claude-code',
  protocol: ANTHROPIC,
  shell: command => ({ name: 'Bash', input: { command, description: 'a test' } }),
  write: (path, content) => ({ name: 'Write', input: { file_path: path, content } }),
  words: ['--dangerously-skip-permissions', '-p', 'do it'],
  variables: ({ address }) => ({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: address }),
  says: "switches off the agent's own sandbox",
})
