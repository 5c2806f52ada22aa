/** Bubblewrap without pen: whether it works here, and a bare sandbox for claims about one layer. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

/**
 * Directories where engines of other tests mount and unmount. bubblewrap fails when a mount vanishes while it
 * binds it.
 */
const RESTLESS = ['var', 'run', 'tmp', 'dev', 'proc']

/** The tree of this machine, read-only, without those. */
export const hostTree = (): string[] =>
  readdirSync('/')
    .filter(name => !RESTLESS.includes(name))
    .flatMap(name => ['--ro-bind', `/${name}`, `/${name}`])

export const bwrapWorks = (): boolean =>
  process.platform === 'linux' && spawnSync('bwrap', [...hostTree(), '--unshare-all', 'true']).status === 0
