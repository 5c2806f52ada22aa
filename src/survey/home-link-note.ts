/** The user's home links to files of the project, so these are read-only inside. One line says which, and how to open them. */
import { printable, shellWord } from '../base/printable.ts'
import { linkedFrom } from '../policy/files/linked-place.ts'
import { isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'

const MAX_NAMED = 5

export function homeLinkNote({ files, workspace }: Policy): string[] {
  const rules = files.protect.flatMap(({ rule: { path }, source }) => {
    const from = linkedFrom(source)
    return from === undefined ? [] : [{ path, from }]
  })
  const [first] = rules
  if (first === undefined) return []
  const shown = (path: string): string =>
    isWithin(path, workspace) ? `.${path.slice(workspace.length)}` : path
  const open = (path: string): string => `pen run --write ${shellWord(shown(path)) ?? 'PATH'}`
  const whole = rules.find(({ path }) => path === workspace)
  if (whole !== undefined)
    return [
      `${printable(whole.from, 200)} leads to all of this project: it is read-only inside; to let the sandbox write it: ${open(workspace)}`,
    ]
  const named = rules.slice(0, MAX_NAMED).map(({ path, from }) => `${shown(path)} (${from})`)
  const more = rules.length > MAX_NAMED ? ` and ${rules.length - MAX_NAMED} more (see pen plan)` : ''
  return [
    `your home links to these files of the project: read-only inside: ${printable(named.join(', '), 600)}${more}; to let the sandbox write one, name it: ${open(first.path)}`,
  ]
}
