import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { TestLayer } from '../../test/review-layer.ts'
import { reviewLines } from './count-changes.ts'
import { readChanges } from './read-changes.ts'

test('writes, renames, deletions and modes are listed by path; what is as before is not', () => {
  using layer = new TestLayer()
  layer.host(`mkdir -p d/sub gone keep; for f in a b c d/e d/sub/f gone/g keep/k; do echo $f > $f; done
    ln -s a link; ln -s a to-file; echo x > to-link; echo x > to-dir; mkdir to-plain; echo y > to-plain/y`)
  layer.inside(`echo more >> a; rm b; chmod 700 c; mv d dd; rm -r gone; mkdir gone; echo n > gone/new
    touch keep/k; chmod 700 keep/k; chmod 644 keep/k; ln -sfn b link; rm to-file; echo f > to-file
    rm to-link; ln -s a to-link; rm to-dir; mkdir to-dir; echo i > to-dir/in; rm -r to-plain; echo p > to-plain`)
  expect(layer.list).toEqual([
    'changed a',
    'deleted b',
    'mode c',
    'deleted d',
    'deleted d/e',
    'deleted d/sub',
    'deleted d/sub/f',
    'added dd',
    'added dd/e',
    'added dd/sub',
    'added dd/sub/f',
    'deleted gone/g',
    'added gone/new',
    'changed link',
    'type to-dir',
    'added to-dir/in',
    'type to-file',
    'type to-link',
    'type to-plain',
    'deleted to-plain/y',
  ])
})

test('pipes, sockets, and names in other encodings are listed; attributes of overlayfs made inside hide nothing', () => {
  using layer = new TestLayer()
  layer.host('mkdir d; echo kept > d/kept')
  layer.inside(`mkfifo pipe; echo x > "$(printf 'caf\\351')"; echo y > "$(printf 'new\\nline')"
    setfattr -n user.overlay.opaque -v y d; setfattr -n user.overlay.whiteout -v y d
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`)
  expect(layer.list).toEqual(['added caf\xe9', 'added new\nline', 'refused pipe', 'refused socket'])
})

test('a sandbox cannot make a whiteout or a device', () => {
  using layer = new TestLayer()
  layer.host('echo kept > kept')
  layer.inside('! mknod whiteout c 0 0 2>/dev/null; ! mknod null c 1 3 2>/dev/null')
  expect(layer.list).toEqual([])
})

test('locked files and directories are read, and are locked again', () => {
  using layer = new TestLayer()
  layer.host('mkdir z; echo x > z/old')
  layer.inside('mkdir -p a/b; echo x > a/b/c; chmod 0 a/b/c a/b a; rm -r z; mkdir z; chmod 300 z')
  expect(layer.changes.map(({ path, after }) => [path, after?.mode])).toEqual([
    ['a', 0],
    ['a/b', 0],
    ['a/b/c', 0],
    ['z', 0o300],
    // The kernel shows the mark of a directory that was made again to those who may read it.
    ['z/old', undefined],
  ])
  expect(layer.list).toHaveLength(5)
})

test('a sparse file of a terabyte, a deep tree and too many entries are bounded', () => {
  using layer = new TestLayer()
  layer.inside(
    'truncate -s 1T huge; printf end >> huge; p=.; for i in $(seq 80); do p=$p/d; done; mkdir -p $p',
  )
  const changes = layer.changes
  expect(changes.find(({ path }) => path === 'huge')?.after?.size).toBe(2 ** 40 + 3)
  expect(changes.filter(({ refused }) => refused !== undefined)).toHaveLength(1)
  expect(changes).toHaveLength(66)
  expect(() => readChanges(layer.upper, layer.workspace, { maxEntries: 3 })).toThrow('more than')
})

test('the end of a run counts what pen diff lists, and only what it found where that would take long', () => {
  using layer = new TestLayer()
  layer.host(
    'mkdir gone; for i in $(seq 9); do echo $i > gone/$i; done; echo same > same; truncate -s 20M large',
  )
  layer.inside('rm -r gone; touch same; echo a > a; echo b > b')
  const state = `${layer.base}/state`
  mkdirSync(state)
  symlinkSync(layer.layer, `${state}/review`)
  writeFileSync(
    `${layer.layer}/layer.json`,
    JSON.stringify({ version: 1, workspace: layer.workspace, kind: 'overlay', made: 0, base: null }),
  )
  expect(layer.changes).toHaveLength(12)
  expect(reviewLines(state)[0]).toStartWith(
    'review: 12 changes, and the project is as it was; pen diff shows them',
  )
  // It may be as it was.
  layer.inside('touch large; truncate -s 1M z')
  expect(reviewLines(state)[0]).toMatch(
    /review: (?:at least \d+ changes, and )?the project is as it was; pen diff shows/,
  )
})
