import { heldCommits, rememberShown } from '../../../repository/consent/held-commits.ts'
import { defineVerb } from '../../frame/verb.ts'
import { ownRepositories } from './status.ts'

export const verb = defineVerb({
  name: 'git log',
  summary: 'Show commits that wait for your consent',
  details:
    'A commit that brings a submodule or a protected path waits, because programs of the host would enter or run it. Lists such commits and the paths that need consent. pen git import --accept takes over what this command has shown.',
  examples: {
    'pen git log': 'show the commits and their paths',
    'pen git import --accept': 'then take them over',
  },
  async run({ env, project, answer }) {
    const [first] = (await ownRepositories(project, env)).repositories
    const held = first === undefined ? [] : await heldCommits(first)
    if (first !== undefined) rememberShown(first.world.sandbox.stateDir, held)
    const lines = held.flatMap(({ ref, commits, paths, more }) => [
      `${ref}:`,
      ...commits.map(commit => `  ${commit}`),
      '  paths that need your consent:',
      ...paths.map(path => `    ${path}`),
      ...(more === 0
        ? []
        : [
            `  … and ${more} more: too many for pen git import --accept; use git log and git merge with this ref`,
          ]),
    ])
    answer({ version: 1, held }, lines.length === 0 ? 'nothing waits for your consent' : lines)
    return undefined
  },
})
