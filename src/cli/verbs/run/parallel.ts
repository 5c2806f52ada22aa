/**
 * `pen run --parallel N`: the same command in N named sandboxes at once. Each is a `pen run` of its own, because a pipeline owns its
 * process: terminal, signals, and secrets in memory. Output is kept up to a bound, and shown when all have ended.
 */
import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { printable } from '../../../base/printable.ts'
import { startProgram } from '../../../base/start-program.ts'
import { checkName, named, type Project } from '../../../config/project.ts'
import { hasChanges } from '../../../review/layer.ts'
import { forwardSignals, signalNumber } from '../../../terminal/signals.ts'
import type { FlagSpecs } from '../../frame/flag-spec.ts'
import { argumentsOf } from '../../frame/flags.ts'
import type { Invocation } from '../../frame/verb.ts'
import { PART_MODE } from './part.ts'

const MOST = 16
const DEFAULT_NAME = 'run'
/** Of one sandbox, in memory. */
const KEPT_BYTES = 64 * 1024
const SHOWN_LINES = 10
const SHOWN_COLUMNS = 200

interface Parallel extends Pick<Invocation, 'argv' | 'command' | 'name' | 'env' | 'terminal' | 'answer'> {
  readonly count: number
  readonly project: Project
  readonly flags: FlagSpecs
}

interface Part {
  readonly name: string
  readonly id: string
  readonly exitCode: ExitCode
  readonly ms: number
  readonly lines: readonly string[]
  /** Whether there was more output than `lines`. */
  readonly isCut: boolean
}

export async function runParallel(parallel: Parallel): Promise<ExitCode> {
  const { count, project, command, terminal, answer } = parallel
  if (count < 1 || count > MOST)
    throw new PenError('USAGE', {
      what: `--parallel takes 1 to ${MOST}`,
      at: '--parallel',
      hint: '--parallel 3',
    })
  if (command.length === 0)
    throw new PenError('USAGE', {
      what: '--parallel needs a command',
      at: '--parallel',
      hint: 'pen run --parallel 3 -- COMMAND',
    })
  const names = Array.from({ length: count }, (_, i) => `${parallel.name ?? DEFAULT_NAME}-${i + 1}`)
  for (const name of names) checkName(name)
  const words = [...flagWords(parallel), '--', ...command]
  let stopped: NodeJS.Signals | undefined
  const children: Pick<ReturnType<typeof startProgram>, 'kill'>[] = []
  // A command may ignore SIGINT. After SIGTERM, `pen run` ends its sandbox in two seconds.
  const stopForwarding = forwardSignals(
    signal => {
      stopped = signal
      for (const child of children) child.kill('SIGTERM')
    },
    ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'],
  )
  try {
    const parts = await Promise.all(
      names.map(async name => {
        const part = await runOne(parallel.env, name, words, child => children.push(child))
        terminal.note(`pen: ${ending(part)}`)
        return { ...part, id: named(project.shared, name).id }
      }),
    )
    const passed = parts.filter(({ exitCode }) => exitCode === EXIT.ok).length
    answer({ version: 1, results: parts }, [
      ...parts.flatMap(part => [ending(part), ...part.lines.map(line => `  ${line}`)]),
      `${passed} of ${count} succeeded`,
    ])
    const reviewed = names.filter(name => hasChanges(named(project.shared, name).stateDir))
    if (reviewed.length > 1)
      terminal.note(
        `pen: review: see where two of them differ: pen compare ${reviewed.slice(0, 2).join(' ')}`,
      )
    if (stopped !== undefined) return 128 + signalNumber(stopped)
    return passed === count ? EXIT.ok : EXIT.failed
  } finally {
    stopForwarding()
  }
}

/** The flags of the command line that are for each sandbox. */
function flagWords({ argv, flags }: Pick<Parallel, 'argv' | 'flags'>): string[] {
  const out: string[] = []
  for (const one of argumentsOf({ flags, command: 'optional' }, argv)) {
    if (one.is === 'rest') break
    if (one.is === 'word' || ['parallel', 'name', 'json'].includes(one.name)) continue
    out.push(one.value === undefined || one.word.includes('=') ? one.word : `${one.word}=${one.value}`)
  }
  return out
}

async function runOne(
  env: Parallel['env'],
  name: string,
  words: readonly string[],
  started: (child: Pick<ReturnType<typeof startProgram>, 'kill'>) => void,
): Promise<Omit<Part, 'id'>> {
  const began = performance.now()
  const child = startProgram([...ownProgram(), PART_MODE, String(process.pid), `--name=${name}`, ...words], {
    env: { ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  started(child)
  const tail = new Tail()
  await Promise.all([tail.read(child.stdout), tail.read(child.stderr), child.exited])
  const { exitCode, signalCode } = child
  return {
    name,
    exitCode: exitCode ?? 128 + signalNumber((signalCode ?? 'SIGKILL') as NodeJS.Signals),
    ms: Math.round(performance.now() - began),
    ...tail.end(),
  }
}

const ending = ({ name, exitCode, ms }: Pick<Part, 'name' | 'exitCode' | 'ms'>): string =>
  `${name}: exit ${exitCode} after ${(ms / 1000).toFixed(1)} s`

/** The end of what both streams print, in the order of arrival. It is hostile. */
class Tail {
  #bytes: Buffer = Buffer.alloc(0)
  #isCut: boolean = false

  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      const all = Buffer.concat([this.#bytes, chunk])
      this.#isCut ||= all.length > KEPT_BYTES
      this.#bytes = all.subarray(-KEPT_BYTES)
    }
  }

  end(): Pick<Part, 'lines' | 'isCut'> {
    const lines = this.#bytes.toString().trimEnd().split('\n')
    return {
      lines: lines.slice(-SHOWN_LINES).flatMap(line => (line === '' ? [] : printable(line, SHOWN_COLUMNS))),
      isCut: this.#isCut || lines.length > SHOWN_LINES,
    }
  }
}
