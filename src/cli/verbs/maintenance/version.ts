import { version } from '../../../../package.json'
import { defineVerb } from '../../frame/verb.ts'

/** Defined by the build; absent when pen runs from its sources. */
declare const PEN_REVISION: string | undefined

export const verb = defineVerb({
  name: 'version',
  summary: 'Print the version of pen',
  examples: {
    'pen version': 'the same as pen --version',
    'pen version --json': 'also print the revision, runtime and platform',
  },
  insideSandbox: 'allow',
  async run({ answer }) {
    const runtime = process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`
    const revision = typeof PEN_REVISION === 'undefined' ? null : PEN_REVISION
    const { platform, arch } = process
    answer({ version, revision, runtime, platform, arch }, `pen ${version}`)
  },
})
