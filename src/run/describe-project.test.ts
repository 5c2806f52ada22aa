import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RUN_LATER } from '../policy/files/protected-places.ts'
import { changedSince, describeRunLater } from './describe-project.ts'

test('changed files are reported and unchanged ones are not, whatever their dates say', async () => {
  const ws = mkdtempSync(join(tmpdir(), 'pen-later-'))
  try {
    mkdirSync(`${ws}/.github/workflows`, { recursive: true })
    for (const old of ['Makefile', 'package.json', '.github/workflows/old.yml'])
      writeFileSync(`${ws}/${old}`, 'x')
    await Bun.sleep(60)
    const since = Date.now()
    writeFileSync(`${ws}/package.json`, 'y')
    utimesSync(`${ws}/package.json`, new Date(0), new Date(0))
    writeFileSync(`${ws}/.github/workflows/new.yml`, 'y')
    symlinkSync('/absent', `${ws}/build.rs`)
    const names = ['Makefile', 'package.json', '.github/workflows', 'build.rs', 'absent', 'Makefile/x']
    expect(changedSince(ws, names, since)).toEqual(['package.json', '.github/workflows/new.yml', 'build.rs'])
  } finally {
    rmSync(ws, { recursive: true, force: true })
  }
})

test('is reported in one line, with hostile names escaped and many counted', () => {
  expect(describeRunLater([])).toEqual([])
  const [line = '', ...more] = describeRunLater(['package.json', '.mvn/\x1b]52;c;eA==\x07'])
  expect(more).toEqual([])
  expect(line).toContain('push: package.json, .mvn/\\u001b]52;c;eA==\\u0007; read')
  expect(describeRunLater(Array.from({ length: 30 }, (_, i) => `f${i}`))[0]).toContain('f9 and 20 more;')
})

test('however many changed, what git itself would run is shown by name', () => {
  const [line = ''] = describeRunLater(RUN_LATER)
  for (const name of ['git-rebase-todo', '.gitattributes', '.gitmodules']) expect(line).toContain(name)
  expect(line).not.toContain('Dockerfile')
})
