import { PRESETS, type PresetName } from '../../policy/presets.ts'
import { defineFlags } from './flag-spec.ts'

/** Of verbs that start a sandbox which stays. */
export const agentFlag = defineFlags({
  agent: {
    kind: 'choice',
    choices: Object.keys(PRESETS) as PresetName[],
    about: 'with the hosts, volumes and variables of a coding agent: see pen agent',
  },
})
