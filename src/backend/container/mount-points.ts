/**
 * A mount needs something to be mounted on. In an image the engine makes that; in a directory of the host it would stay there, as
 * an empty file or directory that nobody asked for. An engine also follows links, and makes what they lead to.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/path.ts'
import type { Bind } from './arguments.ts'

/** The nearest mount around a path inside; undefined where that is the image. */
const around = (at: string, binds: readonly Bind[]): Bind | undefined =>
  binds
    .filter(bind => bind.at !== at && isWithin(at, bind.at))
    .reduce<Bind | undefined>((a, b) => (a === undefined || b.at.length >= a.at.length ? b : a), undefined)

/** What the host has at a path inside; undefined where that is the image's. */
export function onHost(at: string, binds: readonly Bind[]): string | undefined {
  const bind = around(at, binds)
  return bind === undefined ? undefined : `${bind.from}${at.slice(bind.at.length)}`
}

export function requireMountPoints(targets: readonly string[], binds: readonly Bind[]): void {
  for (const at of targets) {
    const bind = around(at, binds)
    let path: string = bind?.from ?? '/'
    const names = bind === undefined ? [] : at.slice(bind.at.length).split('/')
    for (const name of names.filter(part => part !== '')) {
      path = `${path}/${name}`
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found === undefined) throw notMounted(at, path, 'it does not exist')
      if (found.isSymbolicLink()) throw notMounted(at, path, 'there is a link on the way')
    }
  }
}

const notMounted = (at: string, path: string, why: string): PenError =>
  new PenError('MOUNT_SOURCE', {
    what: `nothing can be mounted at ${printable(at)}: ${why}, and pen leaves nothing in directories of the host`,
    at: path,
    hint: 'make it yourself, or choose another place in "mounts"',
  })
