import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { Stopwatch } from '../../test/stopwatch.ts'
import { parseGlob } from '../policy/files/glob.ts'
import type { Policy } from '../policy/policy.ts'
import { AnyDepth } from '../survey/any-depth.ts'
import { TreeWatch } from './tree-watch.ts'

let base = ''
let ws = ''
let open: TreeWatch | undefined
let ended: string[] = []
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-tree-')))
  ws = `${base}/ws`
  mkdirSync(ws)
  ended = []
})
afterEach(async () => {
  await open?.close()
  rmSync(base, { recursive: true, force: true })
})

function watch(most?: number): TreeWatch {
  const glob = parseGlob('**/.env')
  if (!glob.ok) throw new Error(glob.why)
  const files = { deny: [{ rule: { kind: 'glob', glob: glob.value } }], read: [], write: [], protect: [] }
  const search = AnyDepth.of({ workspace: ws, mounts: [], files } as unknown as Policy, undefined)
  if (search === undefined) throw new Error('no glob')
  open = new TreeWatch(search, { found: () => undefined, overflowed: why => ended.push(why) }, most)
  open.start()
  return open
}

function file(path: string): void {
  mkdirSync(dirname(`${ws}/${path}`), { recursive: true })
  writeFileSync(`${ws}/${path}`, 'x')
}

async function until(isSo: () => boolean, ms = 2000): Promise<boolean> {
  const watched = new Stopwatch()
  while (!isSo() && watched.ms < ms) await Bun.sleep(1)
  return isSo()
}

const finds = (tree: TreeWatch, path: string): Promise<boolean> =>
  until(() => tree.found.has(`${ws}/${path}`))

describe('a denied name is found', () => {
  test('where it stood before, in an old directory, in a new one, and in one that was moved in', async () => {
    file('a/b/.env')
    mkdirSync(`${base}/out/c`, { recursive: true })
    writeFileSync(`${base}/out/c/.env`, '')
    const tree = watch()
    expect(await finds(tree, 'a/b/.env')).toBe(true)
    file('a/.env')
    expect(await finds(tree, 'a/.env')).toBe(true)
    file('n/e/w/.env')
    expect(await finds(tree, 'n/e/w/.env')).toBe(true)
    renameSync(`${base}/out`, `${ws}/in`)
    expect(await finds(tree, 'in/c/.env')).toBe(true)
  })

  test('under the new name of its directory, and not after the directory was moved out', async () => {
    mkdirSync(`${ws}/a/b/c`, { recursive: true })
    const tree = watch()
    await Bun.sleep(20)
    renameSync(`${ws}/a`, `${ws}/z`)
    await Bun.sleep(20)
    file('z/b/c/.env')
    expect(await finds(tree, 'z/b/c/.env')).toBe(true)
    renameSync(`${ws}/z`, `${base}/gone`)
    mkdirSync(`${ws}/z/b/c`, { recursive: true })
    await Bun.sleep(1200)
    writeFileSync(`${base}/gone/b/.env`, '')
    file('z/.env')
    expect(await finds(tree, 'z/.env')).toBe(true)
    expect(tree.found.has(`${ws}/z/b/.env`)).toBe(false)
  })

  test('in a directory without permissions, whose mode stays', async () => {
    const tree = watch()
    mkdirSync(`${ws}/shut`, { mode: 0o311 })
    await Bun.sleep(50)
    expect(lstatSync(`${ws}/shut`).mode & 0o777).toBe(0o311)
    file('shut/.env')
    expect(await finds(tree, 'shut/.env')).toBe(true)
    chmodSync(`${ws}/shut`, 0o755)
  })

  test('and reported, where a name on the way is non-UTF-8', async () => {
    const tree = watch()
    const odd = Buffer.concat([Buffer.from(`${ws}/d`), Buffer.from([0xff])])
    mkdirSync(odd)
    await Bun.sleep(20)
    writeFileSync(Buffer.concat([odd, Buffer.from('/.env')]), '')
    expect(await until(() => tree.uncovered.size > 0)).toBe(true)
    expect([...tree.uncovered]).toEqual([[`${ws}/d\ufffd/.env`, 'its name is no text']])
    expect(tree.found.size).toBe(0)
  })
})

test('more directories than the bound end the watch, once; removed ones do not count', async () => {
  const tree = watch(20)
  for (let i = 0; i < 100; i++) {
    mkdirSync(`${ws}/d${i}`)
    rmSync(`${ws}/d${i}`, { recursive: true })
    if (i % 10 === 0) await Bun.sleep(15)
  }
  file('x/.env')
  expect(await finds(tree, 'x/.env')).toBe(true)
  expect(ended).toEqual([])
  for (let i = 0; i < 30; i++) mkdirSync(`${ws}/d${i}`)
  await until(() => ended.length > 0)
  await Bun.sleep(20)
  expect(ended).toEqual(['the project has more than 20 directories, too many to search for **/.env'])
})

test('after any moves, every directory is watched under its name', async () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map(names => names.join('/'))
  const step = fc.record({ do: fc.constantFrom('make', 'move', 'remove', 'wait'), from: path, to: path })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      rmSync(ws, { recursive: true })
      mkdirSync(ws)
      const tree = watch()
      for (const { do: what, from, to } of steps) {
        if (what === 'wait') await Bun.sleep(from.length % 3)
        else if (what === 'make') mkdirSync(`${ws}/${from}`, { recursive: true })
        else if (what === 'remove') rmSync(`${ws}/${from}`, { recursive: true, force: true })
        else attempt(() => renameSync(`${ws}/${from}`, `${ws}/${to}`))
      }
      await Bun.sleep(5)
      const dirs = (readdirSync(ws, { recursive: true }) as string[]).filter(dir =>
        existsSync(`${ws}/${dir}`),
      )
      for (const dir of dirs) file(`${dir}/.env`)
      for (const dir of dirs) expect([dir, await finds(tree, `${dir}/.env`)]).toEqual([dir, true])
      await tree.close()
    }),
    { numRuns: 40 },
  )
})

function attempt(act: () => void): void {
  try {
    act()
  } catch {
    // The directory is not there, or not empty.
  }
}

/** In a user namespace of its own, because an empty bound of this user would stop every other program. */
function inNamespace(instances: number): string {
  const script = `
    const { TreeWatch } = await import('${import.meta.dir}/tree-watch.ts')
    const search = { workspace: '${ws}', globs: [{ text: '**/.env' }] }
    try { await new TreeWatch(search, {}).close(); console.log('opened') } catch (error) { console.log(error.message) }`
  const bound = `echo ${instances} > /proc/sys/user/max_inotify_instances; exec "$0" -e "$1"`
  const words = ['unshare', '--user', '--map-root-user', 'sh', '-ec', bound, process.execPath, script]
  const { stdout, stderr } = Bun.spawnSync(words, { env: { ...process.env, BUN_BE_BUN: '1' } })
  return `${stdout}${stderr}`
}

test('P3 a user without an inotify instance gets an error before the start; one instance is enough', () => {
  expect(inNamespace(0)).toContain('files.deny **/.env needs an inotify instance')
  expect(inNamespace(8)).toBe('opened\n')
})
