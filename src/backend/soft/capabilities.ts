import { limitSupport } from '../../limits/probe.ts'
import type { Capabilities, Enforcement } from '../../plan/gaps.ts'

/** What pen alone can do: judge what it is asked for, and watch what it started. */
export const capabilities = (): Capabilities => ({
  backend: 'soft',
  isolation: 'soft',
  kernelFiles: false,
  networkNamespace: false,
  gateway: true,
  bridge: false,
  seccomp: false,
  listedExec: false,
  images: false,
  mapsUser: false,
  daemonUser: false,
  ports: false,
  limits: limits(),
})

/** Processes are found by walking `/proc`, and cgroups may be there without namespaces. Elsewhere there is nothing to look at. */
function limits(): Capabilities['limits'] {
  const onLinux = process.platform === 'linux'
  const watched: Enforcement = onLinux ? 'watchdog' : 'none'
  const held = onLinux ? limitSupport().held : new Set<string>()
  const hold = (limit: 'memory' | 'cpus' | 'pids'): Enforcement => (held.has(limit) ? 'kernel' : watched)
  return {
    memory: hold('memory'),
    cpus: hold('cpus'),
    pids: hold('pids'),
    files: 'kernel',
    disk: watched,
    output: watched,
    wall: 'watchdog',
  }
}
