/** Starts a program by Node's own module, which Bun has too. */
import { spawn } from 'node:child_process'
import type { CaptureOptions, Child, Words } from '../base/collect.ts'

export async function startByNode(
  [program, ...args]: Words,
  { env, cwd, input }: CaptureOptions,
): Promise<Child> {
  const child = spawn(program, args, {
    env: { ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  child.stdin?.on('error', () => {})
  return {
    exited: new Promise(resolve => child.once('exit', (code, signal) => resolve({ code, signal }))),
    read: take =>
      new Promise(resolve => {
        for (const output of ['stdout', 'stderr'] as const)
          child[output]?.on('data', (chunk: Uint8Array) => take(output, chunk))
        child.once('close', () => resolve())
      }),
    feed: text => void child.stdin?.end(text),
    kill: () => void child.kill('SIGKILL'),
    close: () => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    },
  }
}
