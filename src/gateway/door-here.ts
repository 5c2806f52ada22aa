/**
 * Furnishes a namespace without a process of its own, where pen may step into namespaces (the host's root): this thread
 * goes in, opens the listeners and comes back. Only loading the rules is left to another program, and that goes on
 * while pen does something else.
 */
import { libc } from '../base/libc.ts'
import { applySettings, openListeners, type Role } from './door-listeners.ts'
import { startWithin } from './door-namespace.ts'
import { RULES } from './door-rules.ts'

export type Opened = readonly (readonly [Role, number])[]

const TIME_LIMIT_MS = 10_000

/** Runs something in the namespace, and comes back. */
export type StepIn = <T>(work: () => T) => T

/** Undefined when the kernel refused the rules. */
export async function furnishMapped(stepIn: StepIn, nft: string): Promise<Opened | undefined> {
  const { opened, loading } = stepIn(() => ({
    loading: Bun.spawn([nft, RULES], { env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'ignore'] }),
    opened: openListeners('mapped'),
  }))
  const timer = setTimeout(() => loading.kill('SIGKILL'), TIME_LIMIT_MS)
  const code = await loading.exited
  clearTimeout(timer)
  const network = opened.find(([role]) => role === 'network')?.[1]
  if (code === 0 && network !== undefined) {
    startWithin(network, applySettings)
    return opened
  }
  for (const [, fd] of opened) libc().close(fd)
  return undefined
}

export const furnishPorts = (stepIn: StepIn, ports: readonly number[]): Opened =>
  stepIn(() => {
    const opened = openListeners(ports)
    applySettings()
    return opened
  })
