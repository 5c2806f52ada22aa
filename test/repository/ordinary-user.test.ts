/**
 * Everyday git for an ordinary user: as root, this file runs the claims as `pentest`. Conflicts and hostile directories take
 * the same code for every user.
 */
import { expect } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { ordinary } from '../conformance/launcher.ts'
import { onlyWhen } from '../skip.ts'

onlyWhen(ordinary !== undefined)(
  'everyday git and the box of pen’s own git are the same for an ordinary user',
  async () => {
    if (ordinary === undefined) return
    const { uid, gid, become } = ordinary
    const dir = mkdtempSync('/tmp/pen-ordinary-')
    chownSync(dir, uid, gid)
    const files = ['everyday', 'box'].map(name => `${import.meta.dir}/${name}.test.ts`)
    const child = Bun.spawn([...become, process.execPath, 'test', '--timeout', '60000', ...files], {
      env: { PATH: process.env['PATH'] ?? '', HOME: dir, TMPDIR: dir },
      stdout: 'pipe',
      stderr: 'pipe',
    })
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
