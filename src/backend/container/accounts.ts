/**
 * The users and groups of an image, plus the user that runs commands. The image's text affects only its own container.
 */
import { USER_NAME } from '../../plan/environment.ts'

const SHELL_FIELD = 6

/**
 * `planned` is the plan's whole file. The result has its line for the user, and the image's lines for all other users.
 */
export function withUser(image: string, planned: string): string {
  const ours = planned.split('\n').find(line => line.startsWith(`${USER_NAME}:`))
  if (ours === undefined || image.trim() === '') return planned
  const id = ours.split(':')[2]
  const theirs = image.split('\n').filter(line => line.trim() !== '')
  const others = theirs.filter(line => !line.startsWith(`${USER_NAME}:`) && line.split(':')[2] !== id)
  const same = theirs.find(line => line.startsWith(`${USER_NAME}:`) || line.split(':')[2] === id)
  return `${[...others, withShell(ours, same)].join('\n')}\n`
}

/** The image may lack the host's shell. The image's account has a shell that exists, and every image has /bin/sh. */
function withShell(ours: string, theirs: string | undefined): string {
  const fields = ours.split(':')
  if (fields.length <= SHELL_FIELD) return ours
  const shell = theirs?.split(':')[SHELL_FIELD]
  fields[SHELL_FIELD] = shell !== undefined && /^\/[\w./-]+$/.test(shell) ? shell : '/bin/sh'
  return fields.join(':')
}
