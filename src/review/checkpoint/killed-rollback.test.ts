/** Checkpoints and rollbacks are killed at many moments: each layer and each checkpoint is whole, one state or the other. */
import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { finishLayer, type Layer, layerPaths, makeLayer, readLayer } from '../layer.ts'
import {
  checkpointPath,
  keepCheckpoint,
  listCheckpoints,
  partsOf,
  stageCheckpoint,
  unfinishedCopies,
} from './checkpoint.ts'
import { finishRollback, rollBack } from './rollback.ts'

const KILLS = Number(process.env['PEN_KILLS'] ?? 8)
const FILES = 30

/** `a` has no git directory, and its top is locked. */
function write(state: 'a' | 'b', { tree, git }: ReturnType<typeof partsOf>): void {
  chmodSync(tree, 0o755)
  for (const name of readdirSync(tree)) rmSync(`${tree}/${name}`)
  for (let i = 0; i < FILES; i++) writeFileSync(`${tree}/${state}${i}`, state)
  rmSync(git, { recursive: true, force: true })
  if (state === 'b') {
    mkdirSync(git, { recursive: true })
    writeFileSync(`${git}/synced`, state)
  }
  chmodSync(tree, state === 'a' ? 0o500 : 0o755)
}

/** The one state that all parts agree on. */
function stateIn({ tree, git }: { tree: string; git: string }): string {
  const names = readdirSync(tree)
  const state = names[0]?.[0] ?? ''
  expect(new Set(names)).toEqual(new Set(Array.from({ length: FILES }, (_, i) => `${state}${i}`)))
  for (const name of names) expect(readFileSync(`${tree}/${name}`, 'utf8')).toBe(state)
  expect(existsSync(git)).toBe(state === 'b')
  return state
}

test('after SIGKILL at any moment the layer is one state, and each checkpoint is whole', async () => {
  const base = realpathSync(mkdtempSync(`${tmpdir()}/pen-rollback-`))
  const stateDir = `${base}/state`
  try {
    for (const path of [`${base}/project`, stateDir]) mkdirSync(path)
    makeLayer(stateDir, `${base}/project`)
    const made = (at: number): Layer =>
      finishLayer(stateDir, { workspace: `${base}/project`, kind: 'overlay', made: at, base: null })
    const parts = partsOf(stateDir, made(1))
    for (const [i, state] of (['a', 'b'] as const).entries()) {
      made(i)
      write(state, parts)
      keepCheckpoint(stateDir, stageCheckpoint(stateDir, 'asked', state))
    }
    let midway = 0
    for (let kill = 0; kill < KILLS; kill++) {
      const child = Bun.spawn(
        [process.execPath, `${import.meta.dir}/../../../test/checkpoint-layer.ts`, stateDir],
        {
          stdout: 'pipe',
          stderr: 'inherit',
        },
      )
      await child.stdout.getReader().read()
      await Bun.sleep((kill * 7919) % 50)
      // Every other kill is between the exchanges, as far as this process is fast enough.
      const end = performance.now() + 2000
      if (kill % 2 === 1) while (!existsSync(layerPaths(stateDir).rollback) && performance.now() < end);
      child.kill('SIGKILL')
      await child.exited
      if (existsSync(layerPaths(stateDir).rollback)) midway++
      finishRollback(stateDir)
      const state = stateIn(parts)
      expect(readLayer(stateDir)?.made).toBe(state === 'a' ? 0 : 1)
      for (const { name, why, layer } of listCheckpoints(stateDir)) {
        const from = checkpointPath(stateDir, name)
        const held = stateIn({ tree: `${from}/tree`, git: `${from}/git` })
        expect([name, layer.made]).toEqual([name, held === 'a' ? 0 : 1])
        if (why === 'asked' && name !== 'again') expect(held).toBe(name)
      }
    }
    expect(midway).toBeGreaterThan(0)
    const left = `${layerPaths(stateDir).dir}/checkpoints/.new-1`
    mkdirSync(left, { recursive: true })
    expect(unfinishedCopies(stateDir, { remove: false })).toContain(left)
    unfinishedCopies(stateDir, { remove: true })
    expect(existsSync(left)).toBe(false)
    rollBack(stateDir, 'a')
    expect(stateIn(parts)).toBe('a')
    expect(readdirSync(`${layerPaths(stateDir).dir}/checkpoints`).length).toBeLessThanOrEqual(8)
  } finally {
    removeTree(base)
  }
}, 60_000)
