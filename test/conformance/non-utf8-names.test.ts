/** Non-UTF-8 names. The kernel takes any bytes, and so does git. */
import { expect } from 'bun:test'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'

const bytes = (path: string): Buffer => Buffer.from(path, 'latin1')

conformance(
  'P3 a denied file with a non-UTF-8 name stops the start, or is reported when it appears',
  async box => {
    const secret = bytes(join(box.project, '.env\xff'))
    writeFileSync(secret, 'secret')
    const refused = await box.sh('cat .env*')
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('has a name that is no text')
    rmSync(secret)

    writeFileSync(bytes(join(box.project, 'plain\xff')), 'plain')
    mkdirSync(bytes(join(box.project, 'directory\xfe')))
    const run = box.start(['/bin/sh', '-c', 'cat plain*; echo; until test -e seen; do sleep 0.05; done'])
    await run.printed('plain')
    writeFileSync(secret, 'secret')
    const records = () => box.host('cat "$HOME"/.pen/sandboxes/*/audit/*')
    for (let i = 0; i < 200 && !records().includes('its name is no text'); i++) await Bun.sleep(50)
    box.file('seen', '')
    const { code, stderr } = await run.ended
    expect(code).toBe(0)
    expect(stderr).toMatch(/\.env.* could not be covered \(its name is no text\)/)
  },
)

conformance(
  'P3 a repository behind a non-UTF-8 name is reported, and git status on the host does not enter it',
  async box => {
    box.host('git init -q .')
    box.file(
      'plant.sh',
      `d=$(printf 'r\\377'); mkdir "$d"; cd "$d"; git init -q .
git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x
git config core.fsmonitor 'touch ${box.home}/ran; false'; cd ..; git add "$d" 2>/dev/null`,
    )
    const { stderr } = await box.sh('sh plant.sh')
    expect(stderr).toMatch(/a repository was made .* git on the host would obey core\.fsmonitor=touch/)
    box.host('git status -s')
    expect(existsSync(join(box.home, 'ran'))).toBe(false)

    const ordinary = await box.sh('echo x > file; git add file; git ls-files')
    expect([ordinary.code, ordinary.stdout.includes('file\n')]).toEqual([0, true])
  },
  { once: 'the search at the end is the same after every backend' },
)
