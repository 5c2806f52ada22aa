/**
 * The same claims for an ordinary user: as root, this file runs the others as `pentest`. Evil objects are left out: git
 * refuses them for every user.
 */
import { expect } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { ordinary } from '../conformance/launcher.ts'
import { onlyWhen } from '../skip.ts'

onlyWhen(ordinary !== undefined)(
  'everyday git, conflicts and hostile directories are the same for an ordinary user',
  async () => {
    if (ordinary === undefined) return
    const { uid, gid, become } = ordinary
    const dir = mkdtempSync('/tmp/pen-ordinary-')
    chownSync(dir, uid, gid)
    const files = ['everyday', 'conflicts', 'hostile', 'box'].map(
      name => `${import.meta.dir}/${name}.test.ts`,
    )
    const child = Bun.spawn(
      [...become, process.execPath, 'test', '--timeout', '60000', '-t', '^(?!an evil)', ...files],
      {
        env: { PATH: process.env['PATH'] ?? '', HOME: dir, TMPDIR: dir },
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    rmSync(dir, { recursive: true, force: true })
    expect([
      code,
      code === 0
        ? ''
        : `${out}${err}`
            .split('\n')
            .filter(line => !line.startsWith('(pass)'))
            .join('\n'),
    ]).toEqual([0, ''])
  },
  240_000,
)
