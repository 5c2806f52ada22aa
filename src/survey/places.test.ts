import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Places } from './places.ts'

test('the target of a protected link is protected in each directory that the sandbox may write, and nowhere else', () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-places-')))
  try {
    for (const dir of ['ws', 'shared/vscode', 'other']) mkdirSync(`${base}/${dir}`, { recursive: true })
    writeFileSync(`${base}/other/idea`, '')
    for (const [name, to] of [
      ['.vscode', '../shared/vscode'],
      ['.npmrc', '../shared/npmrc'],
      ['.idea', '../other/idea'],
    ] as const)
      symlinkSync(to, `${base}/ws/${name}`)
    const places = new Places([`${base}/ws`, `${base}/shared`])
    for (const name of ['.vscode', '.npmrc', '.idea']) places.add(`${base}/ws/${name}`, `${base}/ws`)
    const { protect, watch } = places.found()
    const short = (path: string): string => path.slice(base.length + 1)
    expect(protect.map(({ path, root }) => [path, root].map(short))).toEqual([['shared/vscode', 'shared']])
    const absent = watch.filter(({ rule }) => rule.kind === 'nothing')
    expect(absent.map(({ path, root }) => [path, root].map(short))).toEqual([['shared/npmrc', 'shared']])
  } finally {
    rmSync(base, { recursive: true })
  }
})
