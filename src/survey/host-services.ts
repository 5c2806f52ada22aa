/**
 * Host services that listen on a socket in a directory that the sandbox sees, such as a database or a process manager. A
 * read-only mount does not prevent connections, and such a service acts on the host. The kernel lists the sockets of the
 * host's network namespace. Sockets that the sandbox binds belong to another and are not listed.
 */
import { lstatSync, realpathSync } from 'node:fs'
import { absent } from '../base/beneath/look-at.ts'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import { isWithin } from '../policy/files/path.ts'
import { type RelativeServices, relativeServices } from './relative-services.ts'

const TABLE = '/proc/net/unix'

/** Paths of sockets below the roots, except those that a grant names itself. */
export function hostServices(roots: readonly string[], granted: readonly string[]): RelativeServices {
  const found = new Set<string>()
  const { paths, unlocated } = boundPaths(roots)
  for (const path of paths) {
    if (!roots.some(root => isWithin(path, root))) continue
    const real = socketAt(path)
    if (real === undefined || granted.includes(real)) continue
    if (roots.some(root => real !== root && isWithin(real, root))) found.add(real)
  }
  return { paths: [...found], unlocated }
}

/** For a socket that was bound by a relative name. */
const RELATIVE = /^\w+: (?:\w+ ){5} *\d+ ([^/@].*)$/gm

const NONE: RelativeServices = { paths: [], unlocated: [] }
let lately = { sockets: '', found: NONE }

/** Socket names as the servers bound them. */
function boundPaths(roots: readonly string[]): RelativeServices {
  try {
    const table = readKernelFile(TABLE, 'utf8')
    const lines = table.split('\n').filter(line => line.includes(' /'))
    // Finding the paths of relative names is slow, so it is done only when their list changes.
    const relative = [...table.matchAll(RELATIVE)].map(([line, name = '']) => ({ line, name }))
    const sockets = [...roots, ...relative.map(({ line }) => line)].join('\n')
    if (sockets !== lately.sockets) {
      const names = relative.map(({ name }) => name)
      lately = { sockets, found: names.length === 0 ? NONE : relativeServices(roots, names) }
    }
    const absolute = lines.map(line => line.slice(line.indexOf(' /') + 1))
    return { paths: [...absolute, ...lately.found.paths], unlocated: lately.found.unlocated }
  } catch (error) {
    return absent(error, TABLE) ?? NONE
  }
}

function socketAt(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    return lstatSync(real).isSocket() ? real : undefined
  } catch {
    // Gone, or pen may not reach it: then a sandbox of the same user cannot either.
    return undefined
  }
}
