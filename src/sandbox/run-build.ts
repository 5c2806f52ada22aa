/** The engine at work: what it says is shown and kept, and it ends when pen does. */
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { printable } from '../base/printable.ts'

export interface BuildRun {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  readonly show: (line: string) => void
}

const MAX_LOG = 8 * 2 ** 20
const MAX_LINE = 4096
/** Asked first: the engine ends its containers and takes them away. */
const GRACE_MS = 5000

const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** Returns the engine's exit code; 128 and the signal when somebody ended it. */
export async function runBuild({ argv, env, log, show }: BuildRun): Promise<number> {
  // When pen is killed outright nobody is left to end it: then the kernel asks it to.
  const setpriv = findTool('setpriv')
  const tied = setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'TERM', '--']
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  const file = openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  const child = Bun.spawn([...tied, ...argv], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    cwd: '/',
    env: { ...env },
  })
  let ended: keyof typeof SIGNALS | undefined
  const stop = (signal: NodeJS.Signals): void => {
    ended ??= signal as keyof typeof SIGNALS
    child.kill('SIGTERM')
    setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref()
  }
  for (const signal of Object.keys(SIGNALS)) process.on(signal, stop)
  try {
    let room = MAX_LOG
    const keep = (line: string): void => {
      const said = printable(line, MAX_LINE)
      show(said)
      const bytes = Buffer.from(`${said}\n`)
      if (bytes.length <= room) writeSync(file, bytes)
      room -= bytes.length
    }
    await Promise.all([eachLine(child.stdout, keep), eachLine(child.stderr, keep)])
    const code = await child.exited
    return ended === undefined ? code : 128 + SIGNALS[ended]
  } finally {
    for (const signal of Object.keys(SIGNALS)) process.off(signal, stop)
    closeSync(file)
  }
}

/** The build is hostile: a line that never ends is cut, and a progress bar that goes back to its beginning is many lines. */
async function eachLine(stream: ReadableStream<Uint8Array>, act: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n|\r/)
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') act(line)
    if (rest.length > MAX_LINE) {
      act(rest)
      rest = ''
    }
  }
  if (rest !== '') act(rest)
}
