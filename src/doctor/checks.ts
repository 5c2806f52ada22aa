/** All checks of the doctor. Each check comes after the ones that it depends on. */
import { checkDoor } from './door.ts'
import { checkEngines } from './engines.ts'
import { checkProject, checkState } from './file-systems.ts'
import type { Check } from './finding.ts'
import { checkHostDns } from './host-dns.ts'
import { checkIdMapping, checkKernel, checkLandlock, checkUserNamespaces } from './kernel.ts'
import { checkKvm } from './kvm.ts'
import { checkLeftovers, checkLimits } from './limits.ts'
import { checkPolicy, checkSandbox } from './sandbox.ts'
import { checkBubblewrap, checkTools } from './tools.ts'
import { checkVm } from './vm.ts'

export const CHECKS: readonly Check[] = [
  { id: 'kernel', name: 'the kernel', run: () => checkKernel() },
  { id: 'tools', name: 'tools', run: checkTools },
  { id: 'user-namespaces', name: 'user namespaces', run: checkUserNamespaces },
  { id: 'bubblewrap', name: 'bubblewrap', run: checkBubblewrap },
  { id: 'landlock', name: 'Landlock', run: () => checkLandlock() },
  // Before any check runs a sandbox, because every run removes leftovers.
  { id: 'leftovers', name: 'leftovers', run: checkLeftovers },
  { id: 'limits', name: 'limits', run: checkLimits },
  { id: 'id-mapped-mounts', name: 'id-mapped mounts', run: checkIdMapping },
  { id: 'project', name: 'the project', run: checkProject },
  { id: 'state', name: 'the state of pen', run: checkState },
  { id: 'network', name: 'the network of a sandbox', run: checkDoor },
  { id: 'dns', name: 'name servers', run: checkHostDns },
  { id: 'policy', name: 'the policy', run: checkPolicy },
  { id: 'engines', name: 'engines', run: checkEngines },
  { id: 'kvm', name: 'KVM', run: checkKvm },
  { id: 'vm', name: 'virtual machines', run: checkVm },
  { id: 'run', name: 'pen run', run: checkSandbox },
]
