/** Commands of pen on the host, as the user of a box, with faults injected into their system calls. */
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { PEN } from './launcher.ts'

export interface Done {
  readonly code: number | null
  readonly stderr: string
}

/** One command of pen in the project, as the box's user; `around` are words before it. */
export function start(box: Box, args: readonly string[], around: readonly string[] = []) {
  const [program = '', ...rest] = [...box.launcher.who.become, ...around, PEN, ...args]
  const child = spawn(program, rest, {
    cwd: box.project,
    env: box.env(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said: Buffer[] = []
  child.stderr.on('data', (data: Buffer) => said.push(data))
  const ended = new Promise<Done>(resolve =>
    child.once('close', code => resolve({ code, stderr: Buffer.concat(said).toString() })),
  )
  return { child, ended }
}
export const pen = (box: Box, ...args: string[]): Promise<Done> => start(box, args).ended

export const stateDir = (box: Box): string => {
  const sandboxes = join(box.home, '.pen/sandboxes')
  return join(sandboxes, readdirSync(sandboxes)[0] ?? '')
}
export const configOf = (box: Box): string => join(stateDir(box), 'config.json')

/** Every file beside the config and its backup. */
export const leftovers = (box: Box): string[] =>
  readdirSync(stateDir(box)).filter(name => !['config.json', 'config.json.before', 'audit'].includes(name))

/** The system calls of an edit, in order: lock, backup, config, and what follows. */
export const CALLS = ['flock', 'fsync', 'rename', 'unlink', 'fchmod']
export const inject = (call: string, what: string, nth?: number) => [
  'strace',
  '-f',
  '-qq',
  '-o',
  '/dev/null',
  '-e',
  `trace=${call}`,
  '-e',
  `inject=${call}:${what}${nth === undefined ? '' : `:when=${nth}`}`,
]
