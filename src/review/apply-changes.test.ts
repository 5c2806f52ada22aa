import { expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { TestLayer } from '../../test/review-layer.ts'
import { chooseChanges, withDirectories } from './choose-changes.ts'
import { Guard } from './mark-changes.ts'
import { OpenDirectories } from './open-directories.ts'
import { readChanges } from './read-changes.ts'

const text = (layer: TestLayer, name: string): string => readFileSync(`${layer.workspace}/${name}`, 'utf8')
const reasons = ({ left }: ReturnType<TestLayer['accept']>) => left.map(({ path, why }) => `${path}: ${why}`)
/** No name of pen's stays in the project. */
const names = (layer: TestLayer) => readdirSync(layer.workspace, { recursive: true }).sort()

test('times are kept, setuid is dropped, and a directory keeps its setgid bit', () => {
  using layer = new TestLayer()
  layer.host('mkdir d; chmod 2755 d; echo x > d/old')
  layer.inside(`echo y > d/new; chmod 6755 d/new; ln -s new d/link; chmod 755 d/old; chmod g-s d; chmod 700 d
    touch -hd '2001-02-03 04:05:06.123456789' d/new d/link d`)
  expect(layer.accept().left).toEqual([])
  const stats = (name: string) => lstatSync(`${layer.workspace}/${name}`, { bigint: true })
  expect(stats('d/new').mode & 0o7777n).toBe(0o755n)
  expect(stats('d/old').mode & 0o7777n).toBe(0o755n)
  expect(stats('d').mode & 0o7777n).toBe(0o2700n)
  const when = stats('d/new').mtimeNs
  expect([when % 1_000_000_000n, stats('d/link').mtimeNs, stats('d').mtimeNs]).toEqual([
    123456789n,
    when,
    when,
  ])
})

test('what changes on either side after it was listed is not applied, and the user’s version stays', () => {
  using layer = new TestLayer()
  layer.host('for f in edited replaced removed gone linked mode fine; do echo old > $f; done; mkdir full')
  layer.inside(`for f in edited replaced removed linked fine lower; do echo new > $f; done; rm gone; chmod 700 mode
    echo appears > appears; rmdir full`)
  const changes = layer.changes
  layer.host(`echo mine >> edited; echo mine > x; mv x replaced; rm removed; echo mine >> gone; ln -sf fine linked
    echo mine > appears; echo mine > mode; echo mine > full/file`)
  layer.inside('echo newer > lower')
  const before = names(layer)
  const result = layer.accept(changes)
  expect(
    reasons(result)
      .map(line => line.split(':')[0])
      .sort(),
  ).toEqual(['appears', 'edited', 'full', 'gone', 'linked', 'lower', 'mode', 'removed', 'replaced'])
  expect(result.applied.map(({ path }) => path)).toEqual(['fine'])
  expect(names(layer)).toEqual(before)
  expect(
    ['edited', 'replaced', 'gone', 'appears', 'mode', 'full/file'].map(name => text(layer, name)),
  ).toEqual(['old\nmine\n', 'mine\n', 'old\nmine\n', 'mine\n', 'mine\n', 'mine\n'])
})

test('a file that a program writes at this moment is put back', () => {
  using layer = new TestLayer()
  layer.host('echo old > written; echo old > removed; echo old > read')
  layer.inside('echo new > written; rm removed; echo new > read')
  const open = [openSync(`${layer.workspace}/written`, 'a'), openSync(`${layer.workspace}/removed`, 'r+')]
  const reader = openSync(`${layer.workspace}/read`, 'r')
  const { ino } = lstatSync(`${layer.workspace}/written`)
  expect(reasons(layer.accept())).toEqual([
    'written: a program is writing it',
    'removed: a program is writing it',
  ])
  expect(lstatSync(`${layer.workspace}/written`).ino).toBe(ino)
  expect(text(layer, 'read')).toBe('new\n')
  expect(names(layer)).toEqual(['read', 'removed', 'written'])
  for (const fd of [...open, reader]) closeSync(fd)
  expect(layer.accept().left).toEqual([])
})

test('a directory that became a link leads nowhere: nothing is written outside the project', () => {
  using layer = new TestLayer()
  const outside = `${layer.base}/outside`
  mkdirSync(`${outside}/sub`, { recursive: true })
  writeFileSync(`${outside}/sub/file`, 'precious')
  layer.host('mkdir -p d/sub; echo old > d/sub/file; echo old > d/sub/gone')
  layer.inside('echo new > d/sub/file; rm d/sub/gone; echo new > d/sub/other; mkdir d/sub/dir')
  const changes = layer.changes
  renameSync(`${layer.workspace}/d`, `${layer.workspace}/was`)
  symlinkSync(outside, `${layer.workspace}/d`)
  expect(layer.accept(changes).applied).toEqual([])
  expect(readdirSync(`${outside}/sub`)).toEqual(['file'])
  expect(readFileSync(`${outside}/sub/file`, 'utf8')).toBe('precious')
  // A link in the layer is data as well.
  renameSync(`${layer.workspace}/d`, `${layer.base}/link`)
  renameSync(`${layer.workspace}/was`, `${layer.workspace}/d`)
  layer.inside(`rm -r d/sub; ln -s ${outside}/sub d/sub`)
  layer.accept()
  expect(readdirSync(`${outside}/sub`)).toEqual(['file'])
})

test('what the user moved into place is a conflict, and what accept put there is none', async () => {
  using layer = new TestLayer()
  layer.host(`mkdir -p d e/sub; echo x > d/old; for f in a b; do echo $f > e/sub/$f; done
    mkdir -p ../mine/deep; echo precious > ../mine/deep/file; echo other > ../mine/a`)
  await Bun.sleep(30)
  const made = Date.now()
  layer.inside('rm -r d; mkdir d; echo new > e/sub/a; echo new > e/sub/b; mkdir e/mine; echo new > e/mine/a')
  layer.accept(layer.changes.filter(({ path }) => path === 'e/sub/a'))
  layer.host('mv ../mine d/mine')
  const conflicts = layer.marked(made).filter(({ conflict }) => conflict !== undefined)
  expect(conflicts.map(({ path }) => path)).toEqual(['d/mine/a', 'd/mine/deep/file'])
  layer.accept(layer.marked(made).filter(({ conflict }) => conflict === undefined))
  expect(text(layer, 'd/mine/deep/file')).toBe('precious\n')
  expect(text(layer, 'e/sub/b')).toBe('new\n')
})

test('names in other encodings, holes and read-only directories are applied', () => {
  using layer = new TestLayer()
  layer.host('mkdir locked; echo old > locked/file; chmod 555 locked')
  layer.inside(`printf x > "$(printf 'caf\\351')"; mkdir "$(printf 'd\\n')"; echo y > "$(printf 'd\\n')/y"
    chmod 755 locked; echo new > locked/file; echo new > locked/other; chmod 555 locked
    truncate -s 8M holes; printf end >> holes`)
  expect(layer.accept().left).toEqual([])
  expect(layer.list).toEqual([])
  expect(lstatSync(`${layer.workspace}/locked`).mode & 0o777).toBe(0o555)
  const { size, blocks } = lstatSync(`${layer.workspace}/holes`)
  expect([size, blocks < 1000]).toEqual([8 * 2 ** 20 + 3, true])
  chmodSync(`${layer.workspace}/locked`, 0o755)
})

test('on a full disk accept stops with whole files, and goes on when there is room', async () => {
  using layer = new TestLayer()
  layer.inside('for i in $(seq 40); do head -c 50000 /dev/urandom > f$i; done')
  const accept = `'${process.execPath}' '${import.meta.dir}/../../test/accept-layer.ts' '${layer.base}' | tail -1`
  const script = `mount -t tmpfs -o size=3m,mode=755 pen '${layer.workspace}' && cd '${layer.workspace}'
    head -c 2000000 /dev/zero > filler; ${accept}; rm filler; ls -A | wc -l
    for f in $(ls -A); do cmp -s "$f" '${layer.upper}'/"$f" || echo "$f is broken"; done
    ${accept}; diff -r '${layer.upper}' . && echo same`
  const namespace = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const child = Bun.spawn(['unshare', ...namespace, '--mount', 'sh', '-c', script], { stdout: 'pipe' })
  const [first = '', count, second = '', same] = (await new Response(child.stdout).text()).split('\n')
  const { applied, stopped } = JSON.parse(first) as { applied: number; stopped: string }
  expect([stopped, Number(count), applied < 40]).toEqual(['the disk is full', applied, true])
  expect([JSON.parse(second), same]).toEqual([{ applied: 40 - applied, left: 0, stopped: null }, 'same'])
})

test('a copy instead of an overlay gives the same list, and edits of the user are none of it', () => {
  using layer = new TestLayer()
  layer.host(`mkdir -p d gone src/sub; for f in same changed gone/x d/old d/yours yours mode src/sub/f; do echo $f > $f; done; mkdir .git; echo x > .git/HEAD
    cp -a . ../layer/merged`)
  Bun.sleepSync(20)
  writeFileSync(`${layer.layer}/layer.json`, '')
  const doneNs = lstatSync(`${layer.layer}/layer.json`, { bigint: true }).ctimeNs
  Bun.sleepSync(20)
  const copy = `${layer.layer}/merged`
  const inside = Bun.spawnSync(
    [
      'sh',
      '-ec',
      'echo new > changed; rm -r gone; echo n > d/new; chmod 700 mode; echo evil > .git/HEAD; ln -s d l; mv src lib',
    ],
    { cwd: copy },
  )
  expect(inside.exitCode).toBe(0)
  layer.host('echo mine > yours; echo mine > d/mine; echo mine > d/yours; rm same')
  utimesSync(`${layer.workspace}/d`, 1, 1)
  const changes = readChanges(copy, layer.workspace, { copy: { beganNs: doneNs - 15_000_000n, doneNs } })
  expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    'changed changed',
    'added d/new',
    'deleted gone',
    'deleted gone/x',
    'added l',
    'added lib',
    'added lib/sub',
    'added lib/sub/f',
    'mode mode',
    'deleted src',
    'deleted src/sub',
    'deleted src/sub/f',
  ])
  expect(existsSync(`${layer.workspace}/same`)).toBe(false)
})

test('a new file brings new directories, but no directory in the place of a file that stays', async () => {
  using layer = new TestLayer()
  layer.host('echo old > edited; echo old > kept')
  await Bun.sleep(30)
  const made = Date.now()
  layer.inside('rm edited kept; mkdir edited kept new; for d in edited kept new; do echo x > $d/in; done')
  layer.host('echo mine > edited')
  const changes = layer.marked(made)
  const nothing = new Guard({ workspace: layer.workspace, mayWrite: () => true, protectedPaths: [] })
  const { chosen } = chooseChanges(changes, [], nothing, false)
  expect(reasons(layer.accept(chosen.filter(({ path }) => path.startsWith('edited'))))).toEqual([
    'edited/in: its directory is not there',
  ])
  const files = changes.filter(({ path }) => /^(?:kept|new)\/in$/.test(path))
  const result = layer.accept(withDirectories(files, changes))
  expect(reasons(result)).toEqual(['kept/in: its directory is not there'])
  expect(['edited', 'kept', 'new/in'].map(name => text(layer, name))).toEqual(['mine\n', 'old\n', 'x\n'])
})

test('files in more directories than a process may open are all applied', () => {
  using layer = new TestLayer('in memory')
  layer.inside('mkdir -p a/b/c; cd a/b/c; mkdir $(seq 600); for i in *; do echo $i > $i/f; done')
  using directories = new OpenDirectories(layer.workspace, layer.upper, 'write')
  for (const { path } of layer.changes) directories.find(path)
  expect(readdirSync('/proc/self/fd').length).toBeLessThan(1000)
  expect(layer.accept().left).toEqual([])
})
