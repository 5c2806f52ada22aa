import { limitSupport } from '../../limits/probe.ts'
import type { Capabilities, Enforcement } from '../../plan/gaps.ts'

/** What pen can do without kernel isolation: judge requests, and watch the processes that it started. */
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

/** Linux only: processes are found in `/proc`, and cgroups may exist without namespaces. */
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
