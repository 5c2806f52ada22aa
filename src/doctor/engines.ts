/** Container engines and virtual machines that are installed. Asked for their version alone: pen does not use them yet. */
import { findTool } from '../base/find-tool.ts'
import { installLine } from './distribution.ts'
import { type Finding, ok, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

const ENGINES: readonly { readonly name: string; readonly package: string }[] = [
  { name: 'podman', package: 'podman' },
  { name: 'docker', package: 'docker.io' },
  { name: 'runc', package: 'runc' },
  { name: 'crun', package: 'crun' },
  { name: 'runsc', package: 'runsc' },
  { name: 'qemu-system-x86_64', package: 'qemu-system-x86' },
  { name: 'qemu-system-aarch64', package: 'qemu-system-arm' },
]

const UNUSED = 'pen does not use it yet'

export async function checkEngines({ distribution }: Machine): Promise<readonly Finding[]> {
  const found = await Promise.all(
    ENGINES.map(async ({ name, package: from }) => {
      const path = findTool(name)
      if (path === undefined) return []
      return [judgeEngine(name, path, await askVersion(path), installLine(distribution, from))]
    }),
  )
  return found.flat()
}

export function judgeEngine(
  name: string,
  path: string,
  version: string | undefined,
  install: string,
): Finding {
  const id = `engine-${name}`
  if (version === undefined) return weak(id, path, `it does not tell its version; ${UNUSED}`, install)
  const escapes = escapesOf(name, version)
  if (escapes.length === 0) return ok(id, `${path} ${version}`, UNUSED)
  return weak(
    id,
    `${path} ${version}`,
    `${UNUSED}; programs have left its containers: ${describeEscapes(escapes)}, as of ${TABLE_DATE}`,
    `${install}, unless your distribution has mended it under the same number`,
  )
}
