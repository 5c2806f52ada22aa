/** Mounts and verdicts cannot disagree: the plan is interpreted as a model and compared with `decideFile`. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyDocument, groupRules, layerOf, PATHS, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { accessOf, factsFor } from '../../test/arbitrary/tree-model.ts'
import { compile } from '../policy/compile.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { mergeLayers } from '../policy/merge.ts'
import type { Policy } from '../policy/policy.ts'
import { profileLayer } from '../policy/profile.ts'
import { buildTree } from './tree.ts'

type Documents = {
  readonly user: object[]
  readonly untrusted: object[]
  readonly allowUserExpansion: boolean
}

const anyDocuments: fc.Arbitrary<Documents> = fc.record({
  user: fc.array(anyDocument('user'), { maxLength: 2 }),
  untrusted: fc.array(anyDocument('untrusted'), { maxLength: 1 }),
  allowUserExpansion: fc.boolean(),
})

function policyOf({ user, untrusted, allowUserExpansion }: Documents): Policy {
  const merged = mergeLayers({
    base: name => profileLayer(name, world),
    workspace: WORKSPACE,
    trusted: user.map(value => layerOf(value, 'user')),
    untrusted: untrusted.map(value => layerOf(value, 'untrusted')),
    allowUserExpansion,
  })
  // Mounts at other paths are not grants of a path, so other tests cover them.
  return { ...compile(merged.settings, WORKSPACE, groupRules), mounts: [] }
}

test('what the mounts show and let write is what the verdict says, on every path', () => {
  fc.assert(
    fc.property(anyDocuments, documents => {
      const policy = policyOf(documents)
      const { steps } = buildTree(policy, factsFor(policy, PATHS), { uid: 1000, gid: 1000 }, false)
      for (const path of PATHS) {
        const said = {
          read: decideFile(policy, path, 'read').ok,
          write: decideFile(policy, path, 'write').ok,
        }
        expect({ path, ...accessOf(steps, path) }).toEqual({ path, ...said })
      }
    }),
    {
      numRuns: 300,
      examples: [
        [
          {
            user: [{ files: { write: ['a/b'], protect: ['a'] } }],
            untrusted: [{ files: { deny: ['a/*/c'] } }],
            allowUserExpansion: false,
          },
        ],
      ],
    },
  )
})
