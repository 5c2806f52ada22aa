import { OPENAI } from './mock-openai.ts'
import { claimPreset, KEY } from './preset-claim.ts'

const shell = (cmd: string) => ({ name: 'exec_command', input: { cmd, yield_time_ms: 30_000 } })

claimPreset({
  agent: 'codex',
  protocol: OPENAI,
  shell,
  write: (path, text) =>
    shell(`apply_patch <<'EOF'
*** Begin Patch
*** Add File: ${path}
+${text.trimEnd()}
*** End Patch
EOF`),
  words: ['exec', '--model', 'gpt-5', 'do it'],
  variables: ({ address }) => ({ CODEX_API_KEY: KEY, OPENAI_BASE_URL: `${address}/v1` }),
  says: "switches off the agent's own sandbox",
})
