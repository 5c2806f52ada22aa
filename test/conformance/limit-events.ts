/** What a run reports of its limits: on stderr, and in the audit. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { auditRecords } from '../audit-records.ts'
import type { Box } from './box.ts'
import type { Ran, RunOptions } from './launcher.ts'

/** The limit records in the audit of a project, as `limit consequence`, in order. */
export function events(box: Box, project = box.project): string[] {
  const sandboxes = join(box.home, '.pen/sandboxes')
  const name = project.split('/').at(-1) ?? ''
  return readdirSync(sandboxes)
    .filter(sandbox => sandbox.startsWith(`${name}-`))
    .flatMap(sandbox => auditRecords<Record<string, string>>(join(sandboxes, sandbox)))
    .filter(({ kind }) => kind === 'limit-hit')
    .sort((a, b) => ((a['time'] ?? '') < (b['time'] ?? '') ? -1 : 1))
    .map(({ limit, reason }) => `${limit} ${reason}`)
}

/** pen's lines about limits, without its name and without the fix, which each line must have. */
export const limitNotes = ({ stderr }: Ran): string[] =>
  [...stderr.matchAll(/^pen: limit: (.*)$/gm)].map(([, line = '']) => {
    const [what = '', fix = ''] = line.split('; to raise it: ')
    return fix.includes('pen config set limits.') ? what : `${line} (without a fix)`
  })

export const limited = (limit: string, more: RunOptions = {}): RunOptions => ({
  ...more,
  flags: ['--limit', limit],
})
