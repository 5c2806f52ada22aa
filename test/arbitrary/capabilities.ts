/** A backend that can do everything, for tests that remove capabilities from it. */
import type { Capabilities } from '../../src/plan/gaps.ts'

export const ABLE: Capabilities = {
  backend: 'process',
  isolation: 'process',
  kernelFiles: true,
  daemonUser: false,
  networkNamespace: true,
  gateway: true,
  bridge: true,
  seccomp: true,
  listedExec: true,
  images: false,
  mapsUser: true,
  ports: true,
  sshAgent: true,
  review: true,
  limits: {
    cpus: 'kernel',
    memory: 'kernel',
    pids: 'kernel',
    wall: 'kernel',
    disk: 'kernel',
    output: 'kernel',
    files: 'kernel',
  },
}
