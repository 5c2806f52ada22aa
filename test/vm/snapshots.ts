/** A project whose guests are restored from a snapshot, for tests of snapshots. */
import { afterAll, expect } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { EVERYBODY, launcherOf, onMachines, type Ran } from '../conformance/launcher.ts'

const who = EVERYBODY.at(-1)
export const CANARY = `canary-${crypto.randomUUID()}`
let box: Box | undefined
afterAll(() => box?.remove())

export function here(): Box {
  if (who === undefined) throw new Error('no user')
  box ??= new Box(launcherOf(onMachines(who)))
  return box
}

const SEE = 'date +%s%3N; od -An -tx1 -N16 /dev/urandom; cat /proc/sys/kernel/random/boot_id; cat canary'

export const run = (): Promise<Ran> =>
  here().sh(SEE, { flags: ['--env', 'SECRET'], env: { PEN_DEBUG: '1', SECRET: CANARY }, timeoutMs: 100_000 })

export const cache = (): string => join(here().home, '.pen/cache/vm-snapshots')
export const files = (): string[] =>
  readdirSync(cache(), { recursive: true, encoding: 'utf8' }).map(name => join(cache(), name))
export const fileOf = (name: string): string => files().find(path => path.endsWith(`/${name}`)) ?? ''

/** How the guest came up. */
export const way = ({ stderr }: Ran): string[] =>
  [...stderr.matchAll(/ms {2}(guest booted|guest restored|snapshot taken|the snapshot was not used)$/gm)].map(
    ([, what = '']) => what,
  )
export const COLD = ['guest booted', 'snapshot taken']

/** The first start takes a snapshot, and the next one is restored from it. */
export async function takeSnapshot(): Promise<void> {
  rmSync(cache(), { recursive: true, force: true })
  here().file('canary', CANARY)
  expect(way(await run())).toEqual(COLD)
  expect(way(await run())).toEqual(['guest restored'])
}
