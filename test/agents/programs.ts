/**
 * The real agents that tests drive. `npm test` installs them without their install scripts, so tests start the
 * programs directly.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const packages = join(import.meta.dir, 'node_modules')
const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
const vendor = arch === 'arm64' ? 'aarch64-unknown-linux-musl' : 'x86_64-unknown-linux-musl'

/** The file to start, by the name of pen's preset. Gemini is a Node script. */
export const PROGRAMS = {
  'claude-code': join(packages, `@anthropic-ai/claude-code-linux-${arch}/claude`),
  codex: join(packages, `@openai/codex-linux-${arch}/vendor/${vendor}/bin/codex`),
  gemini: join(packages, '.bin/gemini'),
  opencode: join(packages, `opencode-linux-${arch}/bin/opencode`),
} as const

export const missingAgents = (): readonly string[] =>
  Object.entries(PROGRAMS).flatMap(([name, file]) => (existsSync(file) ? [] : [name]))
