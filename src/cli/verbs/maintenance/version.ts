import { version } from '../../../../package.json'
import { EXIT } from '../../../base/error.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

/** Defined by the build; absent when pen runs from its sources. */
declare const PEN_REVISION: string | undefined

export const verb = defineVerb({
  name: 'version',
  summary: 'Print the version of pen',
  flags: jsonFlag,
  examples: [
    { line: 'pen version', does: 'the same as pen --version' },
    { line: 'pen version --json', does: 'also print the revision, runtime and platform' },
  ],
  insideSandbox: 'allow',
  async run({ flags, terminal }) {
    if (flags.json) {
      const runtime = process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`
      const revision = typeof PEN_REVISION === 'undefined' ? null : PEN_REVISION
      terminal.printJson({ version, revision, runtime, platform: process.platform, arch: process.arch })
    } else terminal.print(`pen ${version}`)
    return EXIT.ok
  },
})
