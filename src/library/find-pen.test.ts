import { afterAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findPen } from './find-pen.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-find-')))
afterAll(() => rmSync(root, { recursive: true }))

function file(path: string, text = ''): string {
  const full = join(root, path)
  mkdirSync(dirname(full), { recursive: true })
  writeFileSync(full, text)
  return full
}

function install(dir: string, name = 'pen'): string {
  const home = `${dir}/node_modules/${name}`
  file(`${home}/package.json`, JSON.stringify({ name, exports: './dist/index.js' }))
  file(`${home}/dist/index.js`)
  return file(`${home}/dist/pen`)
}

const app = install('app')
const project = dirname(file('project/x'))
const find = (here: string | undefined, more: object = {}) =>
  findPen({ named: undefined, variable: undefined, project, here, ...more })

describe('the pen binary', () => {
  test('is the one in the package of the library', () => {
    expect(find(join(root, 'app/node_modules/pen/dist/index.js'))).toBe(app)
    const own = install('project')
    expect(find(join(project, 'node_modules/pen/dist/index.js'))).toBe(own)
    rmSync(join(project, 'node_modules'), { recursive: true })
  })

  test('is found for a bundle in the packages of its directory', () => {
    expect(find(file('app/out/bundle.js'))).toBe(app)
    const published = install('published', 'pen-sandbox')
    expect(find(file('published/out/bundle.js'))).toBe(published)
  })

  test('is the one that the option or the environment names', () => {
    expect(find(undefined, { named: app })).toBe(app)
    expect(find(undefined, { variable: app })).toBe(app)
    for (const wrong of ['pen', './pen', join(root, 'absent')]) {
      expect(() => find(undefined, { named: wrong })).toThrow('the option pen')
      expect(() => find(undefined, { variable: wrong })).toThrow('PEN_PROGRAM')
    }
  })

  test('is never taken from the project unless the option names it', () => {
    const planted = install('project')
    const bundle = file('project/out/bundle.js')
    expect(() => find(bundle)).toThrow('is in the project')
    expect(() => find(undefined, { variable: planted })).toThrow('is in the project')
    symlinkSync(planted, join(root, 'link'))
    expect(() => find(undefined, { variable: join(root, 'link') })).toThrow('is in the project')
    expect(find(bundle, { named: planted })).toBe(planted)
  })

  test('that a bundle does not contain is an error with a fix', () => {
    const lonely = file('lonely/bundle.js')
    cpSync(app, join(root, 'lonely/pen'))
    for (const here of [lonely, undefined]) expect(() => find(here)).toThrow('a bundle does not contain it')
  })
})
