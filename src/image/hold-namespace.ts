/** A network namespace for programs that an engine starts. Every process in it can be found and killed. */
import type { Engine } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import { findTool, missingTool } from '../base/find-tool.ts'
import { startProgram } from '../base/start-program.ts'

interface HeldNamespace {
  /** The process that holds the namespace. */
  readonly pid: number
  /** Whether the namespace belongs to a user namespace of the engine. */
  readonly userNamespace: boolean
  /** Kills every process in the namespace with SIGKILL. */
  endPrograms(): true
  /** Kills them and releases the namespace. */
  release(): Promise<void>
}

/**
 * Prints its pid. For every line that it reads, and when pen is gone, it kills the other processes in its namespace. It uses
 * only shell builtins, so that it is faster than the processes it kills can fork.
 */
const HOLD = `
sweep() {
  for again in 1 2 3; do
    for process in /proc/[0-9]*; do
      [ "$process/ns/net" -ef /proc/self/ns/net ] && [ "$process" != "/proc/$$" ] && kill -9 "\${process#/proc/}"
    done
  done
}
trap '' INT TERM HUP QUIT
echo $$
while read -r line; do sweep; done
sweep
`

export async function holdNamespace(engine: Engine): Promise<HeldNamespace> {
  const unshare = findTool('unshare')
  if (unshare === undefined) throw missingTool('unshare', 'install util-linux')
  const userNamespace = process.getuid?.() !== 0
  const within = userNamespace ? [engine.program, ...engine.flags, 'unshare'] : []
  const holder = startProgram([...within, unshare, '--net', '/bin/sh', '-c', HOLD], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
    cwd: '/',
    env: { ...engine.env },
  })
  const release = async (): Promise<void> => {
    await holder.stdin.end()
    await holder.exited
  }
  try {
    return {
      pid: await firstNumber(holder.stdout),
      userNamespace,
      endPrograms: () => {
        holder.stdin.write('end\n')
        void holder.stdin.flush()
        return true
      },
      release,
    }
  } catch (error) {
    await release()
    throw error
  }
}

async function firstNumber(stream: ReadableStream<Uint8Array>): Promise<number> {
  let text = ''
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString('latin1')
    const number = /^([1-9][0-9]*)\n/.exec(text)?.[1]
    if (number !== undefined) return Number(number)
    if (text.length > 64) break
  }
  throw new PenError('BACKEND', {
    what: 'no network namespace could be made for the build',
    hint: 'what this machine can do: pen doctor',
  })
}
