import type { AuditRecord } from '../../../audit/read.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import { defineVerb } from '../../frame/verb.ts'
import { logFlags, requireRun, showLogs } from './logs.ts'

export const verb = defineVerb({
  name: 'proxy logs',
  summary: 'Watch what the gateway refuses, as it happens',
  details:
    'On a terminal it follows until Ctrl-C; otherwise, or with --once, it prints once. --all includes allowed traffic.',
  flags: {
    ...logFlags,
    once: { kind: 'boolean', about: 'print once, even on a terminal' },
  },
  examples: {
    'pen proxy logs': 'show refused and failed connections, then new ones',
    'pen proxy logs --all --since 10m': 'show all connections of the last ten minutes, then new ones',
    'pen proxy logs --once --json': 'print the audit records once',
  },
  async run({ flags, terminal, project }) {
    const follow = !flags.once && (flags.follow || isTerminal(1))
    requireRun(project, flags.run)
    await showLogs({ ...flags, project, follow, terminal, isOfInterest: isOfNetwork })
  },
})

const KINDS: readonly string[] = ['dns-refused', 'flow-refused', 'dropped']

const isOfNetwork = ({ kind }: AuditRecord): boolean => kind.startsWith('connection-') || KINDS.includes(kind)
