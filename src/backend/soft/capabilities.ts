import { enforcementOf, limitSupport } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'

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
const limits = (): Capabilities['limits'] =>
  process.platform === 'linux'
    ? enforcementOf(limitSupport().held)
    : enforcementOf(new Set(), { watched: 'none' })
