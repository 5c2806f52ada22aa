import { PRESETS, type PresetName } from '../../policy/presets.ts'
import { defineFlags } from './flag-spec.ts'

/** For verbs that start a sandbox that keeps running. */
export const agentFlag = defineFlags({
  agent: {
    kind: 'choice',
    choices: Object.keys(PRESETS) as PresetName[],
    about: 'add the hosts, volumes and variables of a coding agent; see pen agent',
  },
})
