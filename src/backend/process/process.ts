import { PenError } from '../../base/error.ts'
import type { Capabilities } from '../../plan/gaps.ts'
import type { Backend } from '../backend.ts'

const CAPABILITIES: Capabilities = {
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
  limits: {
    cpus: 'kernel',
    memory: 'kernel',
    pids: 'kernel',
    wall: 'watchdog',
    disk: 'watchdog',
    output: 'watchdog',
    files: 'kernel',
  },
}

export const processBackend: Backend = {
  name: 'process',
  probe: async () => CAPABILITIES,
  start: async () => {
    throw new PenError('BACKEND', { what: 'to come' })
  },
}
