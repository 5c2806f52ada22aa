/**
 * Hosts that agents call in the background: reports, experiments, update checks. No task needs them. They are refused like any
 * other host, but pen asks no question about them and reports them in one line.
 * Hosts that also serve other purposes, such as registries and api.github.com, are not listed: their refusal may matter.
 */
import type { Host } from './host.ts'

export const BACKGROUND_HOSTS: ReadonlySet<string> = new Set([
  'ab.chatgpt.com', // Codex: experiments
  'browser-intake-us5-datadoghq.com', // Claude Code: usage reports
  'cdn.growthbook.io', // Claude Code: experiments
  'downloads.claude.ai', // Claude Code: updates
  'http-intake.logs.us5.datadoghq.com', // Claude Code: usage reports
  'models.opencode.ai', // opencode: the list of models
  'play.googleapis.com', // Gemini CLI: usage reports
  'statsig.anthropic.com', // Claude Code: experiments
])

export const isBackgroundHost = (name: Host | string): boolean => BACKGROUND_HOSTS.has(name)
