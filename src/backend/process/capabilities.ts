import { landlockAbi } from '../../base/kernel/landlock-abi.ts'
import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'

/** What bubblewrap gives on this machine. */
export function capabilities(): Capabilities {
  return {
    backend: 'process',
    isolation: 'process',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: false,
    seccomp: true,
    // Asked only when a policy wants it. The inner mode is pen's own binary: a pen that runs from source has none.
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
