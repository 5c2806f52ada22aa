/** Saves the user's answer to a waiting connection, in the files that `pen allow` and `pen deny` write. */
import { editLiveConfig, editNetworkList } from '../../config/edit.ts'
import { addGrants } from '../../config/grants/network-grants.ts'
import type { Project } from '../../config/project.ts'
import { listOf, printRule } from '../../policy/network/net-rule.ts'
import { allowRules, denyRules } from '../frame/endpoints.ts'
import type { HeldTarget } from './state.ts'

export type Answer = 'once' | 'session' | 'always' | 'not now' | 'never'

/** Long enough for the waiting connection, short enough to miss later ones. */
const NOT_NOW_MS = 2000
const ONCE_SLACK_MS = 2000

/** Returns the message to show. Parses the target again as a rule, because the sandbox chose the name. */
export async function answer(project: Project, held: HeldTarget, given: Answer): Promise<string> {
  const { run, target } = held
  const { stateDir } = project
  const grant = { by: 'pen watch', run } as const
  switch (given) {
    case 'once': {
      const [rule] = await allowRules([target])
      const until = new Date(held.until + ONCE_SLACK_MS)
      if (rule !== undefined) addGrants(stateDir, [{ ...grant, effect: 'allow', rule, once: true, until }])
      return `allowed once: ${target}`
    }
    case 'session': {
      const [rule] = await allowRules([target])
      if (rule !== undefined)
        addGrants(stateDir, [{ ...grant, effect: 'allow', rule, once: false, until: undefined }])
      return `allowed until the sandbox stops: ${target}`
    }
    case 'not now': {
      const [rule] = await denyRules([target])
      const until = new Date(Date.now() + NOT_NOW_MS)
      if (rule !== undefined) addGrants(stateDir, [{ ...grant, effect: 'deny', rule, once: false, until }])
      return `denied once: ${target}`
    }
    case 'always': {
      const [rule] = await allowRules([target])
      if (rule !== undefined)
        await editLiveConfig(project, config =>
          editNetworkList(config, listOf(rule), list => withEntry(list, printRule(rule))),
        )
      return `allowed permanently: ${target} (undo: pen forget ${target})`
    }
    case 'never': {
      const [rule] = await denyRules([target])
      if (rule !== undefined)
        await editLiveConfig(project, config =>
          editNetworkList(config, 'deny', list => withEntry(list, printRule(rule))),
        )
      return `denied permanently: ${target} (undo: pen forget ${target})`
    }
  }
}

const withEntry = (list: readonly string[], text: string): readonly string[] =>
  list.includes(text) ? list : [...list, text]
