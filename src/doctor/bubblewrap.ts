/** Bubblewrap: where pen would take it from, how old it is, and a sandbox made with it. */
import { statSync } from 'node:fs'
import { findTool, TRUSTED_DIRECTORIES } from '../base/find-tool.ts'
import { missingTool } from '../base/missing-tool.ts'
import { capture } from '../base/spawn.ts'
import { SYSTEM_ROOTS } from '../plan/system-view.ts'
import { installLine } from './distribution.ts'
import { type Finding, fails, lastLine, ok, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

const ID = 'bubblewrap'
/** Not the whole tree of the machine: bubblewrap stumbles over mounts that go meanwhile, as those of containers do. */
const SANDBOX = [
  '--unshare-all',
  ...SYSTEM_ROOTS.flatMap(root => ['--ro-bind-try', root, root]),
  ...['--dev', '/dev', '--proc', '/proc', '--'],
]

export async function checkBubblewrap({ distribution }: Machine): Promise<readonly Finding[]> {
  // As the backend does: the program becomes the sandbox's first process, and only root may be able to change it.
  const rootsOwn = TRUSTED_DIRECTORIES.filter(({ owner }) => owner === 'root')
  const bwrap = findTool('bwrap', rootsOwn)
  const program = findTool('true')
  if (bwrap === undefined) {
    const { message, hint } = missingTool('bwrap', installLine(distribution, 'bubblewrap'), rootsOwn)
    return [fails(ID, message, 'it makes the sandbox', hint)]
  }
  const version = (await askVersion(bwrap)) ?? 'of an unknown version'
  const { code, stderr } = await capture([bwrap, ...SANDBOX, program ?? '/bin/true'], {
    env: {},
    timeoutMs: 5000,
    cwd: '/',
  })
  if (code !== 0)
    return [
      fails(
        ID,
        `${bwrap} ${version} could not make a sandbox`,
        lastLine(stderr) || `it ended with ${code}`,
        'see the lines on user namespaces and on the kernel',
      ),
    ]
  const isSetuid = (statSync(bwrap).mode & 0o4000) !== 0
  const escapes = escapesOf('bwrap', version, isSetuid)
  if (escapes.length > 0)
    return [
      weak(
        ID,
        `${bwrap} ${version} made a sandbox`,
        `${describeEscapes(escapes)} (as of ${TABLE_DATE})`,
        installLine(distribution, 'bubblewrap'),
      ),
    ]
  if (isSetuid)
    return [
      weak(
        ID,
        `${bwrap} ${version} made a sandbox`,
        'it is setuid root, which a kernel with user namespaces does not need',
        `sudo chmod u-s ${bwrap}`,
      ),
    ]
  return [ok(ID, `${bwrap} ${version} made a sandbox`)]
}
