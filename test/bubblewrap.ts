/** Bubblewrap without pen: whether it works here, and a sandbox of it for claims about one layer alone. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

/** Where engines of other tests mount and unmount meanwhile: bubblewrap stumbles over a mount that goes while it binds. */
const RESTLESS = ['var', 'run', 'tmp', 'dev', 'proc']

/** The tree of this machine, to be read, but for those. */
export const hostTree = (): string[] =>
  readdirSync('/')
    .filter(name => !RESTLESS.includes(name))
    .flatMap(name => ['--ro-bind', `/${name}`, `/${name}`])

export const bwrapWorks = (): boolean =>
  process.platform === 'linux' && spawnSync('bwrap', [...hostTree(), '--unshare-all', 'true']).status === 0
