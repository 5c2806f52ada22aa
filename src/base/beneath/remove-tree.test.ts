import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import { Stopwatch } from '../../../test/stopwatch.ts'
import { errnoOf } from '../error.ts'
import { removeInSteps, removeTree } from './remove-tree.ts'

const scratch = (): string => mkdtempSync(join(tmpdir(), 'pen-remove-'))

const mountsBelow = (top: string): string[] =>
  readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[1] ?? '')
    .filter(path => path.startsWith(`${top}/`))

/** Built from the deepest up: no path could name it. */
function deepTree(top: string, depth: number): void {
  const name = 'd'.repeat(200)
  mkdirSync(join(top, 'tree'))
  for (let i = 0; i < depth; i++) {
    mkdirSync(join(top, 'next'))
    renameSync(join(top, 'tree'), join(top, 'next', name))
    renameSync(join(top, 'next'), join(top, 'tree'))
  }
}

describe('a tree that a sandbox has filled', () => {
  test('is removed however deep it is, in time that grows only with its names', () => {
    const top = scratch()
    deepTree(top, 3000)
    const watch = new Stopwatch()
    removeTree(top)
    // Opened from the top for every level it takes half a minute.
    expect(watch.ms).toBeLessThan(15_000)
    expect(() => readdirSync(top)).toThrow('ENOENT')
  })

  test('is removed with locked directories, non-UTF-8 names, pipes and sockets; targets of links stay', () => {
    const [top, mine] = [scratch(), scratch()]
    writeFileSync(join(mine, 'file'), 'mine')
    chmodSync(mine, 0o555)
    mkdirSync(join(top, 'shut/below'), { recursive: true })
    writeFileSync(join(top, 'shut/below/file'), '')
    for (const name of ['shut/below', 'shut']) chmodSync(join(top, name), 0)
    mkdirSync(Buffer.concat([Buffer.from(`${top}/`), Buffer.from([0xff, 0x0a])]))
    closeSync(openSync(Buffer.concat([Buffer.from(`${top}/`), Buffer.from([0xfe])]), 'w'))
    symlinkSync(mine, join(top, 'link'))
    symlinkSync('/nowhere', join(top, 'dangling'))
    removeTree(top)
    expect(() => readdirSync(top)).toThrow('ENOENT')
    expect(readFileSync(join(mine, 'file'), 'utf8')).toBe('mine')
    expect(readdirSync(mine)).toEqual(['file'])
    removeTree(mine)
    expect(() => readdirSync(mine)).toThrow('ENOENT')
  })

  test('is removed also when it holds names like those pen uses', () => {
    const top = scratch()
    mkdirSync(join(top, 'a/b/c/d'), { recursive: true })
    for (let i = 0; i < 100; i++) {
      mkdirSync(join(top, `pen-removes-${process.pid}-${i}/x`), { recursive: true })
      writeFileSync(join(top, `pen-removes-${i}`), '')
    }
    removeTree(top)
    expect(() => readdirSync(top)).toThrow('ENOENT')
  })

  test('that is a link is removed as a link, and an absent one is no error', () => {
    const [top, mine] = [scratch(), scratch()]
    symlinkSync(mine, join(top, 'link'))
    removeTree(join(top, 'link'))
    removeTree(join(top, 'link'))
    expect([readdirSync(top), readdirSync(mine)]).toEqual([[], []])
    for (const path of [top, mine]) removeTree(path)
  })

  onlyWhen(process.getuid?.() === 0)('is kept with a mount of the user in it, which is not entered', () => {
    const top = scratch()
    mkdirSync(join(top, 'a/b/mnt'), { recursive: true })
    mkdirSync(join(top, 'mine'))
    writeFileSync(join(top, 'mine/file'), 'mine')
    // The same file system: only the number of the mount differs.
    Bun.spawnSync(['mount', '--bind', join(top, 'mine'), join(top, 'a/b/mnt')])
    try {
      expect(() => removeTree(join(top, 'a'))).toThrow('another mount')
      expect(readFileSync(join(top, 'mine/file'), 'utf8')).toBe('mine')
    } finally {
      for (const path of mountsBelow(top)) Bun.spawnSync(['umount', path])
    }
    removeTree(top)
    expect(() => readdirSync(top)).toThrow('ENOENT')
  })
})

describe('a tree that is judged name by name', () => {
  function removeJudged(top: string, refused: string): { readonly asked: string[]; readonly end: string } {
    const above = openSync(top, 'r')
    const asked: string[] = []
    try {
      const judge = (_: number, path: string) => {
        asked.push(path)
        if (path === refused) throw new Error('refused')
      }
      for (const _ of removeInSteps(above, 'tree', judge));
      return { asked, end: 'removed' }
    } catch (error) {
      return { asked, end: errnoOf(error) ?? (error as Error).message }
    } finally {
      closeSync(above)
    }
  }

  test('keeps a refused name at its place, with every directory above it', () => {
    const top = scratch()
    mkdirSync(join(top, 'tree/a/b'), { recursive: true })
    writeFileSync(join(top, 'tree/a/b/mine'), 'mine')
    expect(removeJudged(top, 'tree/a/b/mine')).toEqual({
      asked: ['tree', 'tree/a', 'tree/a/b', 'tree/a/b/mine'],
      end: 'refused',
    })
    expect(readFileSync(join(top, 'tree/a/b/mine'), 'utf8')).toBe('mine')
    expect(removeJudged(top, 'no name')).toMatchObject({ end: 'removed' })
    expect(readdirSync(top)).toEqual([])
    removeTree(top)
  })

  onlyWhen(process.getuid?.() !== 0)('is not unlocked', () => {
    const top = scratch()
    mkdirSync(join(top, 'tree/shut'), { recursive: true })
    writeFileSync(join(top, 'tree/shut/file'), '')
    chmodSync(join(top, 'tree/shut'), 0o555)
    expect(removeJudged(top, 'no name').end).toBe('EACCES')
    expect(statSync(join(top, 'tree/shut')).mode & 0o777).toBe(0o555)
    expect(readdirSync(join(top, 'tree/shut'))).toEqual(['file'])
    removeTree(top)
  })
})
