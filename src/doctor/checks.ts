/** All checks of the doctor. Each check comes after the ones that it depends on. */
import { checkBubblewrap } from './bubblewrap.ts'
import { checkLimits } from './cgroups.ts'
import { checkDoor } from './door.ts'
import { checkEngines } from './engines.ts'
import { checkProject } from './file-systems.ts'
import type { Finding } from './finding.ts'
import { checkHostDns } from './host-dns.ts'
import { checkIdMapping } from './id-mapping.ts'
import { checkKernel, checkLandlock } from './kernel.ts'
import { checkKvm } from './kvm.ts'
import { checkLeftovers } from './leftovers.ts'
import type { Machine } from './machine.ts'
import { checkPolicy } from './policy.ts'
import { checkSandbox } from './sandbox.ts'
import { checkState } from './state.ts'
import { checkTools } from './tools.ts'
import { checkUserNamespaces } from './user-namespaces.ts'

export interface Check {
  /** For progress lines. */
  readonly name: string
  readonly run: (machine: Machine) => Promise<readonly Finding[]>
}

export const CHECKS: readonly Check[] = [
  { name: 'the kernel', run: machine => checkKernel(machine) },
  { name: 'tools', run: checkTools },
  { name: 'user namespaces', run: checkUserNamespaces },
  { name: 'bubblewrap', run: checkBubblewrap },
  { name: 'Landlock', run: machine => checkLandlock(machine) },
  // Before any check runs a sandbox, because every run removes leftovers.
  { name: 'leftovers', run: checkLeftovers },
  { name: 'limits', run: checkLimits },
  { name: 'id-mapped mounts', run: checkIdMapping },
  { name: 'the project', run: checkProject },
  { name: 'the state of pen', run: checkState },
  { name: 'the network of a sandbox', run: checkDoor },
  { name: 'name servers', run: checkHostDns },
  { name: 'the policy', run: checkPolicy },
  { name: 'engines', run: checkEngines },
  { name: 'virtual machines', run: checkKvm },
  { name: 'pen run', run: checkSandbox },
]
