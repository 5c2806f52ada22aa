import { describe, expect, test } from 'bun:test'
import { list, read } from './sources.ts'

interface Package {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}
interface Lock {
  readonly packages: Readonly<
    Record<string, Package & { optionalDependencies?: Record<string, string>; resolved?: string }>
  >
}

const manifest = JSON.parse(read('package.json')) as Package
const lock = JSON.parse(read('package-lock.json')) as Lock
const decisions = list('docs/decisions', ['.md']).map(read).join('\n')

describe('dependencies', () => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies }

  test('each is pinned to one version', () => {
    expect(Object.entries(all).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })

  test('each is named in a decision that says why it is here', () => {
    expect(Object.keys(all).filter(name => !decisions.includes(`\`${name}\``))).toEqual([])
  })

  test('the lock file has every variant for every platform, so npm ci works everywhere', () => {
    const locked = new Set(Object.keys(lock.packages).map(path => path.split('node_modules/').at(-1)))
    const missing = Object.values(lock.packages).flatMap(entry =>
      Object.keys(entry.optionalDependencies ?? {}).filter(name => !locked.has(name)),
    )
    expect(missing).toEqual([])
  })

  test('the lock file names no registry: each machine uses its own', () => {
    const named = Object.entries(lock.packages).filter(([, entry]) => entry.resolved !== undefined)
    expect(named.map(([path]) => path)).toEqual([])
  })
})
