/** A sandbox that answers questions while files are granted and revoked, as the user of a box. */
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { auditRecords } from '../audit-records.ts'
import { type Box, quote } from './box.ts'
import { LateRun } from './late-run.ts'
import { PEN } from './launcher.ts'
import { stateDir } from './pen-command.ts'

const LOOP = 'while read -r line; do eval "$line" 2>&1; echo "<$?>"; done'

/** Reads shell lines one by one. `pen` inside is the binary under test. */
export function startLoop(box: Box, ...flags: readonly string[]): LateRun {
  const pen = [PEN, 'run', ...box.launcher.flags, ...flags, '--', '/bin/sh', '-c', LOOP]
  const [program = '', ...rest] = [...box.launcher.who.become, ...pen]
  return new LateRun(spawn(program, rest, { cwd: box.project, env: box.env() }))
}

/** pen's own client, for one line inside. */
export const files = (verb: string, ...words: readonly string[]): string =>
  `pen files ${[verb, ...words].map(quote).join(' ')}`

/** pen's own directories that a sandbox sees, from the host: one for each sandbox that runs or was killed. */
export function insides(box: Box): string[] {
  const container = box.launcher.isolation === 'container'
  const all = join(stateDir(box), container ? 'containers' : 'inside')
  return readdirSync(all).map(name => (container ? join(all, name, 'inside') : join(all, name)))
}

export interface AuditRecord {
  readonly kind: string
  readonly seq: number
  readonly [key: string]: unknown
}

/** The broker's records in the audit, in order. */
export function brokerRecords(box: Box): AuditRecord[] {
  return auditRecords<AuditRecord>(stateDir(box)).filter(
    ({ kind }) => kind.startsWith('broker-') || kind === 'grants-changed',
  )
}
