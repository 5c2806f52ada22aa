import { expect, test } from 'bun:test'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { TestLayer } from '../../../test/review-layer.ts'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { copyTree } from './copy-tree.ts'

const MOST = { names: 10_000, bytes: 2 ** 30 }
const LIST = `find . -printf '%p %y %m %n %s %l %U %T@\\n' | sort > "$OLDPWD/listing"; cat f linked dir/* deep/* >> "$OLDPWD/listing"`

test('a mounted copy of a layer is the same tree: deletions, opaque directories, links, modes, times and holes', () => {
  using layer = new TestLayer()
  layer.host(
    'mkdir gone replaced dir; echo x > gone/x; echo x > replaced/old; echo x > dir/a; echo x > dir/b; echo x > f; echo x > deleted',
  )
  layer.inside(`rm -r gone replaced deleted; mkdir replaced; echo new > replaced/new; echo more >> f; ln f linked
    mkfifo pipe; ln -s /etc/passwd out; truncate -s 4G holes; echo end >> holes; echo x > "$(printf 'b\\377d')"
    mkdir deep; echo y > deep/y; touch -d @1000000000 f dir deep out -h; chmod 640 dir/a; chmod 000 replaced/new replaced; chmod 500 dir`)
  const list = (): string => {
    layer.inside(`OLDPWD=..; ${LIST}`)
    return readFileSync(`${layer.layer}/listing`, 'latin1')
  }
  const [before, changes] = [list(), layer.list]
  const size = copyTree(layer.upper, `${layer.layer}/copy`, MOST)
  expect(size.names).toBeGreaterThan(10)
  expect(size.bytes).toBeLessThan(1_000_000)
  renameSync(layer.upper, `${layer.layer}/original`)
  renameSync(`${layer.layer}/copy`, layer.upper)
  expect(layer.list).toEqual(changes)
  expect(list()).toBe(before)
  expect(before).toContain('./f f 644 2 7  ')
})

test('a directory that becomes a link during the copy is not followed', async () => {
  const base = mkdtempSync(`${tmpdir()}/pen-copy-`)
  for (const path of ['secret', 'tree', 'tree/d', 'tree/d/e']) mkdirSync(`${base}/${path}`)
  writeFileSync(`${base}/secret/e`, 'secret')
  symlinkSync('../secret', `${base}/tree/l`)
  const swap = Bun.spawn(['python3', `${import.meta.dir}/../../../test/attack/swap.py`, '60', 'd', 'l'], {
    cwd: `${base}/tree`,
    stdout: 'pipe',
  })
  try {
    await swap.stdout.getReader().read()
    for (let i = 0; i < 200; i++) {
      const copy = `${base}/copy`
      try {
        copyTree(`${base}/tree`, copy, MOST)
      } catch {
        // The name was gone at that moment.
      }
      for (const name of ['d', 'l']) {
        const found = lstatSync(`${copy}/${name}`, { throwIfNoEntry: false })
        if (found?.isDirectory())
          expect(lstatSync(`${copy}/${name}/e`, { throwIfNoEntry: false })?.isFile()).not.toBe(true)
      }
      removeTree(copy)
    }
  } finally {
    swap.kill()
    await swap.exited
    removeTree(base)
  }
})

test('too many names and too deep directories are refused by name', () => {
  const base = mkdtempSync(`${tmpdir()}/pen-copy-`)
  try {
    mkdirSync(`${base}/tree/${'d/'.repeat(210)}`, { recursive: true })
    expect(() => copyTree(`${base}/tree`, `${base}/deep`, MOST)).toThrow('nested too deeply')
    expect(() => copyTree(`${base}/tree`, `${base}/many`, { ...MOST, names: 20 })).toThrow(
      'more than 20 names',
    )
    expect(existsSync(`${base}/many/d/d`)).toBe(true)
  } finally {
    removeTree(base)
  }
})
