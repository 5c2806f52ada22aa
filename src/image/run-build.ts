/** Runs the engine's build: shows and logs its output, and lets a person stop it. */
import { closeSync, constants, createReadStream, openSync, writeSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { startProgram } from '../base/start-program.ts'
import type { LimitHit } from '../limits/limit-hit.ts'
import { type BuildLimits, onProcessors, watchBuild } from './build-limits.ts'
import { eachLine } from './engine-lines.ts'

interface BuildRun {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  readonly show: (line: string) => void
  /** True if the engine ends with pen, because the build's programs are killed then. Otherwise the kernel signals it. */
  readonly endsByItself: boolean
  /** Kills the build's programs, so that the engine ends and cleans up. */
  readonly endPrograms: () => boolean
  readonly bounds: BuildLimits
}

const MAX_LOG = 8 * 2 ** 20
/** Much longer than an engine needs to notice a failed step and remove its container. */
const GRACE_MS = 2000

const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** How the engine ended, and pen's exit code if a person stopped it. */
interface BuildResult {
  readonly code: number
  readonly stopped: number | undefined
  /** The limit that ended the build. */
  readonly hit: LimitHit | undefined
}

/** How long to wait for remaining output after the engine's end. */
const LINGER_MS = 500

export async function runBuild(run: BuildRun): Promise<BuildResult> {
  const { argv, env, log, show, endPrograms } = run
  const setpriv = run.endsByItself ? undefined : findTool('setpriv')
  const { limits, held } = run.bounds
  const narrowed = held.includes('cpus') ? [] : onProcessors(limits.cpus)
  const tied = setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'TERM', '--']
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  const file = openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  const [readEnd, writeEnd] = pipe()
  const child = startProgram([...tied, ...narrowed, ...argv], {
    // The engine holds both ends of its output pipe, so it survives pen. When pen is killed, the build's programs are killed too,
    // and the engine sees a failed step. It removes its container only if writing that error does not kill it.
    stdio: ['ignore', writeEnd, writeEnd, readEnd],
    // Ctrl-C goes to pen, which ends the build in order.
    detached: true,
    cwd: '/',
    env: { ...env },
  })
  closeSync(writeEnd)
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
    const reading = eachLine(createReadStream('', { fd: readEnd }), line => {
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
