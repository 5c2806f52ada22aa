import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'

/** What bubblewrap gives on this machine. */
export function capabilities(): Capabilities {
  return {
    backend: 'process',
    isolation: 'process',
    kernelFiles: true,
    networkNamespace: true,
    gateway: false,
    bridge: false,
    seccomp: true,
    listedExec: false,
    images: false,
    ports: false,
    limits: probeLimits().holds,
  }
}
