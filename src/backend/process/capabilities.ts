import { landlockAbi } from '../../base/kernel/kernel-facts.ts'
import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'

/** What bubblewrap can do on this machine. */
export function capabilities(): Capabilities {
  return {
    backend: 'process',
    isolation: 'process',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: false,
    seccomp: true,
    // Evaluated only when a policy needs it. The guest program is pen's own binary, so a pen that runs from source has
    // none.
    get listedExec() {
      return import.meta.path.startsWith('/$bunfs/') && landlockAbi() > 0
    },
    images: false,
    mapsUser: true,
    daemonUser: false,
    ports: true,
    limits: probeLimits().holds,
  }
}
