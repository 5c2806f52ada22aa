import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './find-program.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-find-')))
afterAll(() => rmSync(root, { recursive: true }))
const bin = join(root, 'bin')
const project = join(root, 'project')
for (const dir of [bin, project]) mkdirSync(dir)
const program = (path: string, text: string) => {
  writeFileSync(path, text)
  chmodSync(path, 0o755)
}
program(join(bin, 'tool'), '#!/usr/bin/env node\n')
program(join(bin, 'wrapper'), '#!/usr/bin/env -S bash -e\n')
program(join(bin, 'old'), '#! /bin/sh\n')
copyFileSync('/bin/sh', join(bin, 'dash'))
symlinkSync('dash', join(bin, 'innocent'))
program(join(project, 'tool'), '#!/usr/bin/env node\n')
writeFileSync(join(bin, 'data'), '')

const find = (word: string) => findProgram(word, [bin], project)

describe('a command', () => {
  test('is looked up only where the system or the user puts programs', () => {
    expect(find('tool')).toEqual({ file: join(bin, 'tool'), tool: { name: 'tool', shell: false } })
    for (const word of ['data', 'absent', '', '.', '..', 'to\0ol']) expect(find(word)).toBeUndefined()
  })

  test('by its absolute path is the tool of that name only if it is the same file', () => {
    expect(find(join(bin, 'tool'))?.tool.name).toBe('tool')
    expect(find('./tool')).toEqual({ file: join(project, 'tool'), tool: { name: undefined, shell: false } })
    expect(find(`../bin/tool`)?.tool.name).toBe('tool')
    expect(find('./absent')).toBeUndefined()
  })

  test.each(['dash', 'innocent', 'wrapper', 'old'])(
    'that is a shell behind another name is one: %s',
    name => {
      expect(find(name)?.tool).toEqual({ name, shell: true })
      expect(find(join(bin, name))?.tool.shell).toBe(true)
    },
  )
})
