/** A policy from one document of the user, on the profile `coding` or the one that the document names. */
import { compile } from '../../src/policy/compile.ts'
import { mergeLayers } from '../../src/policy/merge.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { profileLayer } from '../../src/policy/profile.ts'
import { groupRules, layerOf, WORKSPACE, world } from './layer.ts'

export const mergedOf = (user: object, agent?: object, allowUserExpansion = false) =>
  mergeLayers({
    base: profile => profileLayer(profile, world),
    workspace: WORKSPACE,
    trusted: [layerOf(user, 'user', 'live config')],
    untrusted: agent === undefined ? [] : [layerOf(agent, 'untrusted', 'agent-permissions.json')],
    allowUserExpansion,
  })

export const policyOf = (user: object, agent?: object): Policy =>
  compile(mergedOf(user, agent).settings, WORKSPACE, groupRules)
