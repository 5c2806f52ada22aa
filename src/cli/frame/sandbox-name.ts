/** `--name`: which of the project's sandboxes a verb talks to. Verbs do not declare the flag; it follows from this table. */
import { existsSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { nearest } from '../../base/nearest.ts'
import { findProject, namesOf, type Project } from '../../config/project.ts'
import { defineFlags } from './flag-spec.ts'
import type { Terminal } from './terminal.ts'

/** `may-be-new`: the verb makes a sandbox. A mistyped name must not make one by another verb. */
const VERBS: ReadonlyMap<string, 'known' | 'may-be-new'> = new Map([
  ...(['run', 'start', 'agent', 'mcp'] as const).map(verb => [verb, 'may-be-new'] as const),
  ...[
    'exec',
    'shell',
    'ssh',
    'ssh-config',
    'forward',
    'open',
    'status',
    'stats',
    'stop',
    'restart',
    'rm',
    'logs',
    'proxy logs',
    'watch',
    'grant',
    'revoke',
    'grants',
    'git status',
    'git log',
    'git import',
    'diff',
    'accept',
    'discard',
    'checkpoint',
    'checkpoints',
    'rollback',
  ].map(verb => [verb, 'known'] as const),
])

export const nameFlag = defineFlags({
  name: { kind: 'string', value: 'SANDBOX', about: 'a named sandbox of this project; pen ls lists them' },
})

export const takesName = (verb: string): boolean => VERBS.has(verb)

/** The current project, and in it the sandbox that the verb talks to. */
export function projectFor(verb: string, name: string | undefined, directory?: string): Project {
  const project = findProject(directory, name)
  if (name === undefined || VERBS.get(verb) === 'may-be-new' || existsSync(project.stateDir)) return project
  const names = namesOf(project.shared.stateDir)
  const meant = nearest(name, names)
  const what = `this project has no sandbox "${name}"; ${names.length === 0 ? 'none has a name' : `its names are ${names.join(', ')}`}`
  if (!takesName(verb)) throw new PenError('USAGE', { what, hint: 'pen ls lists all' })
  throw new PenError('USAGE', {
    what,
    at: '--name',
    hint:
      meant === undefined
        ? `make it: pen start --name ${name}`
        : `--name ${meant}, or make it: pen start --name ${name}`,
  })
}

const MENTIONED = new RegExp(`\\bpen (${[...VERBS.keys()].join('|')})\\b(?! --name)`, 'g')

/** Commands in errors and notes of a verb with a name are about the same sandbox. */
export const withName = (text: string, name: string | undefined): string =>
  name === undefined ? text : text.replaceAll(MENTIONED, `$& --name ${name}`)

export function errorWithName(error: unknown, name: string | undefined): unknown {
  if (name === undefined || !(error instanceof PenError) || error.hint === undefined) return error
  const { code, message: what, at, hint, cause } = error
  return new PenError(code, { what, hint: withName(hint, name), ...(at !== undefined && { at }), cause })
}

export const terminalWithName = (terminal: Terminal, name: string | undefined): Terminal =>
  name === undefined ? terminal : { ...terminal, note: line => terminal.note(withName(line, name)) }
