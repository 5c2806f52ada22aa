import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { onlyWhen } from '../../test/skip.ts'
import { findTool, missingTool, type TrustedDirectory } from './find-tool.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-tools-')))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const isRoot = process.getuid?.() === 0

let n = 0
/** A directory of the test user's own with one program in it. */
function place(
  name: string,
  { mode = 0o755 } = {},
): { trusted: TrustedDirectory[]; path: string; program: string } {
  const path = join(root, `${n++}`)
  mkdirSync(path)
  const program = join(path, name)
  writeFileSync(program, '#!/bin/sh\n')
  chmodSync(program, mode)
  return { trusted: [{ path, owner: 'root-or-self' }], path, program }
}

describe('findTool', () => {
  test('finds a tool of the system by its real path', () => {
    const sh = findTool('sh')
    expect(sh).toBe(realpathSync('/bin/sh'))
    expect(isAbsolute(sh ?? '')).toBe(true)
  })

  test('never looks in $PATH', () => {
    const { path } = place('pen-test-tool')
    const before = process.env['PATH']
    process.env['PATH'] = `${path}:.:${before}`
    try {
      expect(findTool('pen-test-tool')).toBeUndefined()
    } finally {
      process.env['PATH'] = before
    }
  })

  test('takes an executable that only its owner can change', () => {
    const { trusted, program } = place('bwrap')
    expect(findTool('bwrap', trusted)).toBe(program)
    expect(findTool('absent', trusted)).toBeUndefined()
  })

  test('follows a link to the real program', () => {
    const { trusted, path, program } = place('real')
    symlinkSync(program, join(path, 'link'))
    symlinkSync('nowhere', join(path, 'dangling'))
    expect(findTool('link', trusted)).toBe(program)
    expect(findTool('dangling', trusted)).toBeUndefined()
  })

  test('skips what cannot be run or is no file', () => {
    expect(findTool('data', place('data', { mode: 0o644 }).trusted)).toBeUndefined()
    const { trusted, path } = place('x')
    mkdirSync(join(path, 'directory'))
    expect(findTool('directory', trusted)).toBeUndefined()
  })

  test('skips a program that every user may write, and finds the next one', () => {
    const open = place('tool', { mode: 0o757 })
    const kept = place('tool')
    expect(findTool('tool', open.trusted)).toBeUndefined()
    expect(findTool('tool', [...open.trusted, ...kept.trusted])).toBe(kept.program)
  })

  test('skips a program in a directory that every user may write', () => {
    const { trusted, path } = place('tool')
    chmodSync(path, 0o777)
    expect(findTool('tool', trusted)).toBeUndefined()
    chmodSync(path, 0o755)
    expect(findTool('tool', trusted)).toBeDefined()
  })

  onlyWhen(isRoot)(
    'passes over another user’s program, and a link to one (only root can give a file away)',
    () => {
      const { trusted, path, program } = place('tool')
      chownSync(program, 12_345, 12_345)
      symlinkSync(program, join(path, 'link'))
      expect(findTool('tool', trusted)).toBeUndefined()
      expect(findTool('link', trusted)).toBeUndefined()
    },
  )

  onlyWhen(!isRoot)(
    'a directory of root’s tools does not take the user’s (as root they are the same)',
    () => {
      const { path } = place('tool')
      expect(findTool('tool', [{ path, owner: 'root' }])).toBeUndefined()
    },
  )

  test('a name is one plain word', () => {
    const { trusted, path } = place('tool')
    for (const name of ['', '.', '..', '../tool', './tool', '/bin/sh', 'to\0ol', '-tool', 'a b']) {
      expect(findTool(name)).toBeUndefined()
      expect(findTool(name, trusted)).toBeUndefined()
    }
    expect(findTool(`../${path.split('/').at(-1)}/tool`, trusted)).toBeUndefined()
  })
})

const dir = mkdtempSync(join(tmpdir(), 'pen-missing-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const refusalOf = (name: string) => {
  const { code, message, hint } = missingTool(name, 'install it', [{ path: dir, owner: 'root' }])
  return [code, message, hint]
}

describe('a program that pen may not run', () => {
  test('is absent or not executable: the fix installs it', () => {
    const words = 'is not installed, or not in a directory that only root can write'
    writeFileSync(join(dir, 'text'), '', { mode: 0o644 })
    for (const name of ['absent', 'text', 'text/below'])
      expect(refusalOf(name)).toEqual(['MISSING_TOOL', `${name} ${words}`, 'install it'])
  })
  test('exists but others can change it: installing it again would not help', () => {
    writeFileSync(join(dir, 'tool'), '', { mode: 0o755 })
    const [code, message, hint] = refusalOf('tool')
    expect([code, message]).toEqual([
      'MISSING_TOOL',
      `${dir}/tool exists, but users other than root can replace or change it`,
    ])
    expect(hint).toBe(
      `chown root ${dir}/tool && chmod go-w ${dir}/tool, and the same for every directory above it`,
    )
  })
})
