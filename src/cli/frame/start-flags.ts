/** The flags of verbs that start a sandbox that keeps running. */
import type { Project } from '../../config/project.ts'
import type { SupervisorOrder } from '../../control/supervisor-order.ts'
import { PRESETS, type PresetName } from '../../policy/presets.ts'
import { debugFlag, defineFlags, type FlagValues } from './flag-spec.ts'
import { loadOptions, policyFlags } from './policy-flags.ts'

export const startFlags = defineFlags({
  ...policyFlags,
  agent: {
    kind: 'choice',
    choices: Object.keys(PRESETS) as PresetName[],
    about: 'add the hosts, volumes and variables of a coding agent; see pen agent',
  },
  ...debugFlag,
})

export const orderOf = (flags: FlagValues<typeof startFlags>, project: Project): SupervisorOrder => ({
  id: project.id,
  ...loadOptions(flags, project),
  ...(flags.agent !== undefined && { agent: flags.agent }),
})
