/** Accept is killed at random moments: every file is whole, old or new, and the next accept goes on. */
import { expect, test } from 'bun:test'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { treeOf } from '../../test/file-operations.ts'
import { TestLayer } from '../../test/review-layer.ts'
import { recoverAccept } from './recover-accept.ts'

const KILLS = Number(process.env['PEN_KILLS'] ?? 25)
const FILES = 300

test('after SIGKILL at any moment each file is whole, nothing is lost, and accept goes on', async () => {
  using layer = new TestLayer('in memory')
  layer.host(`for i in $(seq ${FILES}); do echo "old $i" > f$i; done; mkdir gone; echo x > gone/x; echo y > to-dir
    touch -d @1000000 f* gone/x to-dir`)
  layer.inside(`for i in $(seq ${FILES}); do case $((i % 4)) in
      0) rm f$i;; 1) echo "new $i" > f$i;; 2) mkdir -p d$i; mv f$i d$i/;; 3) chmod 700 f$i; echo "n $i" > g$i;; esac; done
    rm -r gone; echo file > gone; rm to-dir; mkdir to-dir; echo z > to-dir/z`)
  const old = treeOf(layer.workspace)
  cpSync(layer.workspace, `${layer.base}/template`, { recursive: true, preserveTimestamps: true })
  layer.accept()
  const fresh = treeOf(layer.workspace)
  const reset = (): void => {
    for (const name of readdirSync(layer.workspace)) rmSync(`${layer.workspace}/${name}`, { recursive: true })
    cpSync(`${layer.base}/template`, layer.workspace, { recursive: true, preserveTimestamps: true })
  }
  reset()
  let midway = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const child = Bun.spawn([process.execPath, `${import.meta.dir}/../../test/accept-layer.ts`, layer.base], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    await child.stdout.getReader().read()
    await Bun.sleep(Math.random() * 60)
    child.kill('SIGKILL')
    await child.exited
    if (existsSync(`${layer.layer}/journal`)) midway++
    expect(recoverAccept(layer.places)).toEqual([])
    for (const [path, what] of treeOf(layer.workspace)) {
      // The mode and time of a directory come last.
      if (what.startsWith('directory')) continue
      expect([path, [old.get(path), fresh.get(path), modeOnly(old.get(path), fresh.get(path))]]).toEqual([
        path,
        expect.arrayContaining([what]),
      ])
    }
    if (layer.list.length === 0) reset()
  }
  layer.accept()
  expect(treeOf(layer.workspace)).toEqual(fresh)
  expect(midway).toBeGreaterThan(0)
}, 120_000)

/** The content of before with the mode of after: a mode is set in place. */
const modeOnly = (before = '', after = ''): string => before.replace(/^\d+/, /^\d+/.exec(after)?.[0] ?? '')
