/** One command and its descendants, from pen's side. A supervise process starts it, and everything ends together. */
import { closeSync, writeSync } from 'node:fs'
import { adoptOrphans, endBelow, isChildOf, livingBelow, signal } from '../../../base/kernel/end-processes.ts'
import { startTimeOf } from '../../../base/kernel/processes.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { startProgram } from '../../../base/start-program.ts'
import type { Placement } from '../../backend.ts'
import { linesOf, parseReport, type SuperviseOrder } from './order.ts'

export type SupervisedEnding =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'not-started'; readonly errno: string }
  /** The supervise process ended first. The command may have killed it. */
  | { readonly kind: 'lost' }

interface SupervisedOptions {
  readonly stdio: readonly [Stdio, Stdio, Stdio]
  readonly identity: { readonly uid: number; readonly gid: number } | undefined
  readonly placement: Placement
}

type Stdio = number | 'inherit' | 'ignore'

export interface Supervised {
  /** The supervise process. All others are below it. */
  readonly pid: number
  /** The pid of the command, once the kernel confirms it. Undefined when the command never started. */
  readonly started: Promise<number | undefined>
  begin(order: Omit<SuperviseOrder, 'joins'>): void
  signal(name: NodeJS.Signals): void
  /** Kills everything at once. */
  kill(): void
  readonly ended: Promise<{ readonly ending: SupervisedEnding; readonly survivors: number }>
}

/** A supervise process that was stopped, perhaps by the command, must not block pen's end. */
const TIMEOUT_MS = 1000
const LAST_MS = 500

export function startSupervised({ stdio, identity, placement }: SupervisedOptions): Supervised {
  const { wrap, env, joinFds } = placement
  const endOrphans = trackOrphans()
  const child = startProgram([...wrap, ...ownProgram(), '__supervise'], {
    stdio: [...stdio, 'pipe', 'pipe', ...joinFds],
    detached: true,
    env: { ...env },
    cwd: '/',
    ...(identity === undefined ? {} : { uid: identity.uid, gid: identity.gid }),
  } as Parameters<typeof startProgram>[1])
  const [orders, reports] = child.stdio.slice(3, 5) as [number, number]
  let leader: { readonly pid: number; readonly since: string | undefined } | undefined
  let open = true
  const hangUp = (): void => {
    if (open) closeSync(orders)
    open = false
  }
  const toLeader = (name: NodeJS.Signals): void => {
    if (leader !== undefined && startTimeOf(leader.pid) === leader.since) signal(-leader.pid, name)
  }
  const givenUp = Promise.withResolvers<undefined>()
  const started = Promise.withResolvers<number | undefined>()
  const kill = (): void => {
    toLeader('SIGKILL')
    hangUp()
    setTimeout(givenUp.resolve, TIMEOUT_MS, undefined).unref()
  }
  const reported = readReports(reports, pid => {
    // The command's user can write to the pipe of this pid. So the kernel must confirm that it is a child.
    if (isChildOf(pid, child.pid)) leader ??= { pid, since: startTimeOf(pid) }
    // It was killed before it began.
    if (!open) toLeader('SIGKILL')
    started.resolve(leader?.pid)
  })
  const ended = Promise.race([reported, givenUp.promise]).then(async report => {
    // Closes the pipe: the supervise process then kills everything and exits. pen does not wait for one that does not.
    hangUp()
    started.resolve(undefined)
    if (report === undefined) toLeader('SIGKILL')
    await Promise.race([child.exited, Bun.sleep(LAST_MS)])
    let { ending, survivors } = report ?? LOST
    if (!hasExited(child)) {
      survivors = await endBelow(child.pid)
      child.kill('SIGKILL')
      await child.exited
    }
    return { ending, survivors: Math.max(survivors, await endOrphans()) }
  })
  return {
    pid: child.pid,
    started: started.promise,
    begin: order => {
      if (open) writeSync(orders, `${JSON.stringify({ ...order, joins: joinFds.length })}\n`)
    },
    signal: toLeader,
    kill,
    ended,
  }
}

/** Orphans of the command become children of pen. The returned function kills all that are new since this call. */
function trackOrphans(): () => Promise<number> {
  adoptOrphans()
  const before = new Set(livingBelow(process.pid))
  return () => endBelow(process.pid, before)
}

const LOST: Last = { ending: { kind: 'lost' }, survivors: 0 }

interface Last {
  readonly ending: SupervisedEnding
  readonly survivors: number
}

const hasExited = ({ exitCode, signalCode }: Bun.Subprocess): boolean =>
  exitCode !== null || signalCode !== null

/** The reports of one command are far smaller. */
const MAX_REPORT = 65_536

/** Until the supervise process has reported the end, or has exited. */
async function readReports(fd: number, started: (pid: number) => void): Promise<Last | undefined> {
  for await (const line of linesOf(fd, MAX_REPORT)) {
    const report = parseReport(line)
    if (report?.kind === 'started') started(report.pid)
    if (report?.kind === 'not-started') return { ending: report, survivors: 0 }
    if (report?.kind !== 'ended') continue
    const { code, signal: name, survivors } = report
    if (name !== null) return { ending: { kind: 'signal', signal: name }, survivors }
    return { ending: code === null ? LOST.ending : { kind: 'exit', code }, survivors }
  }
  return undefined
}
