/**
 * Hosts that agents call by themselves, beside their work: reports, experiments, update checks. No task needs them. A sandbox
 * is refused them like any other host; a person is not asked about them, and is told of them in one line.
 * Hosts that serve other things too, such as registries and api.github.com, are not here: such a refusal may matter.
 */
import type { Host } from './host.ts'

export interface BackgroundHost {
  /** Who calls it. */
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
