import { isatty } from 'node:tty'
import type { AuditRecord } from '../../../audit/read.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { logFlags, showLogs } from './logs.ts'

export const verb = defineVerb({
  name: 'proxy logs',
  summary: 'Watch what the gateway refuses, as it happens',
  details:
    'On a terminal it goes on until Ctrl-C; elsewhere, or with --once, it prints what there is and ends. Allowed traffic is shown with --all.',
  flags: {
    ...logFlags,
    once: { kind: 'boolean', about: 'print what there is and end, on a terminal too' },
    ...jsonFlag,
  },
  examples: [
    { line: 'pen proxy logs', does: 'refused and failed connections, then the next ones' },
    {
      line: 'pen proxy logs --all --since 10m',
      does: 'all connections of the last ten minutes, then the next',
    },
    { line: 'pen proxy logs --once --json', does: 'for a program' },
  ],
  async run({ flags, terminal }) {
    const follow = !flags.once && (flags.follow || (await isTerminal()))
    return await showLogs({ ...flags, follow, terminal, isOfInterest: isOfNetwork })
  },
})

const KINDS: readonly string[] = ['dns-refused', 'flow-refused', 'dropped']

const isOfNetwork = ({ kind }: AuditRecord): boolean => kind.startsWith('connection-') || KINDS.includes(kind)

/** A wrong yes would never end: this is worth the time that node:tty takes to load. */
async function isTerminal(): Promise<boolean> {
  return isatty(1)
}
