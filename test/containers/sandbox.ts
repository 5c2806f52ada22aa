/** A project whose commands run in containers of one engine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Said, Workshop } from '../images/workshop.ts'

const FLAGS = ['--offline'] as const

export class ContainerProject extends Workshop {
  /** `pen run` of a shell script. */
  sh(script: string, ...flags: readonly string[]): Said {
    return this.pen('run', '--backend', this.engine.backend, ...FLAGS, ...flags, '--', 'sh', '-c', script)
  }

  /** The same, while it runs. */
  start(script: string, ...flags: readonly string[]): ChildProcess {
    const words = ['run', '--backend', this.engine.backend, ...FLAGS, ...flags, '--', 'sh', '-c', script]
    const [program = '', ...rest] = this.words(...words).argv
    return spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Names of pen's containers of this project, running or not. */
  containers(): string[] {
    const id = this.stateDir.slice(this.stateDir.lastIndexOf('/') + 1)
    const filter = `label=pen.sandbox=${id}`
    return this.ask('ps', '--all', '--filter', filter, '--format', '{{.Names}}')
      .out.split('\n')
      .filter(Boolean)
  }
}

/** Waits until the child has printed it. */
export async function printed(child: ChildProcess, text: string): Promise<string> {
  let seen = ''
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not printed: ${text}\n${seen}`)), 30_000)
    const take = (data: Buffer): void => {
      seen += data.toString()
      if (!seen.includes(text)) return
      clearTimeout(timer)
      resolve(seen)
    }
    child.stdout?.on('data', take)
    child.once('exit', code => {
      clearTimeout(timer)
      reject(new Error(`ended with ${code} before it printed ${text}\n${seen}`))
    })
  })
}

export const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`)
