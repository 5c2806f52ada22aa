/** The engine at work: what it says is shown and kept, and a person can end it. */
import { closeSync, constants, createReadStream, openSync, writeSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { startProgram } from '../base/start-program.ts'
import type { LimitHit } from '../limits/limit-hit.ts'
import { type BuildLimits, onProcessors, watchBuild } from './build-limits.ts'
import { eachLine } from './engine-lines.ts'

export interface BuildRun {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  readonly show: (line: string) => void
  /** Whether the engine ends by itself when pen does, because the programs of the build are ended then; else the kernel tells it to. */
  readonly endsByItself: boolean
  /** Ends the programs of the build, so that the engine ends by itself and tidies up. */
  readonly endPrograms: () => boolean
  readonly bounds: BuildLimits
}

const MAX_LOG = 8 * 2 ** 20
/** Far longer than an engine needs to see that a step failed, and to take its container away. */
const GRACE_MS = 2000

const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** How the engine ended, and the exit code of pen when somebody has stopped it. */
export interface BuildResult {
  readonly code: number
  readonly stopped: number | undefined
  /** The limit that ended it. */
  readonly hit: LimitHit | undefined
}

/** What the engine may still have to say after its end. */
const LINGER_MS = 500

export async function runBuild(run: BuildRun): Promise<BuildResult> {
  const { argv, env, log, show, endPrograms } = run
  const setpriv = run.endsByItself ? undefined : findTool('setpriv')
  const { limits, held } = run.bounds
  const narrowed = held.includes('cpus') ? [] : onProcessors(limits.cpus)
  const tied = setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'TERM', '--']
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  const file = openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  const [said, saying] = pipe()
  const child = startProgram([...tied, ...narrowed, ...argv], {
    // It has both ends of what it says, so that it can go on without us: when pen is killed, the programs of the build are
    // ended, and the engine sees a step fail. It takes its container away only if telling so does not end it.
    stdio: ['ignore', saying, saying, said],
    // Ctrl-C is for pen, which ends it in order.
    detached: true,
    cwd: '/',
    env: { ...env },
  })
  closeSync(saying)
  let ended: keyof typeof SIGNALS | undefined
  const end = (): void => {
    setTimeout(() => child.kill('SIGTERM'), endPrograms() ? GRACE_MS : 0).unref()
    setTimeout(() => child.kill('SIGKILL'), 2 * GRACE_MS).unref()
  }
  const stop = (signal: NodeJS.Signals): void => {
    ended ??= signal as keyof typeof SIGNALS
    end()
  }
  const watch = watchBuild(run.bounds, child.pid, end)
  for (const signal of Object.keys(SIGNALS)) process.on(signal, stop)
  try {
    let room = MAX_LOG
    const reading = eachLine(createReadStream('', { fd: said }), line => {
      show(line)
      const bytes = Buffer.from(`${line}\n`)
      if (bytes.length <= room) writeSync(file, bytes)
      else if (room > 0)
        writeSync(file, `pen: the rest of the output is not kept: it has more than ${MAX_LOG} bytes\n`)
      room = bytes.length <= room ? room - bytes.length : 0
    })
    const code = await child.exited
    await Promise.race([reading, Bun.sleep(LINGER_MS)])
    return { code, stopped: ended === undefined ? undefined : 128 + SIGNALS[ended], hit: watch.hit() }
  } finally {
    watch.stop()
    for (const signal of Object.keys(SIGNALS)) process.off(signal, stop)
    closeSync(file)
  }
}
