/**
 * Hosts that agents call in the background: reports, experiments, update checks. No task needs them. They are refused like any
 * other host, but pen asks no question about them and reports them in one line.
 * Hosts that also serve other purposes, such as registries and api.github.com, are not listed: their refusal may matter.
 */
import type { Host } from './host.ts'

interface BackgroundHost {
  /** The agent that calls it. */
  readonly by: string
  readonly why: string
}

export const BACKGROUND_HOSTS: Readonly<Record<string, BackgroundHost>> = {
  'ab.chatgpt.com': { by: 'Codex', why: 'experiments' },
  'browser-intake-us5-datadoghq.com': { by: 'Claude Code', why: 'usage reports' },
  'cdn.growthbook.io': { by: 'Claude Code', why: 'experiments' },
  'downloads.claude.ai': { by: 'Claude Code', why: 'updates' },
  'http-intake.logs.us5.datadoghq.com': { by: 'Claude Code', why: 'usage reports' },
  'models.opencode.ai': { by: 'opencode', why: 'the list of models' },
  'play.googleapis.com': { by: 'Gemini CLI', why: 'usage reports' },
  'statsig.anthropic.com': { by: 'Claude Code', why: 'experiments' },
}

export const isBackgroundHost = (name: Host | string): boolean => Object.hasOwn(BACKGROUND_HOSTS, name)
