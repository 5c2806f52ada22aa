/** What of others is in the program and in the library: packages of npm, and the runtime. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lockedAt } from './runtime.ts'
import type { Target } from './targets.ts'

export interface Part {
  readonly name: string
  readonly version: string
  /** Of the lock file: `sha512-…`. */
  readonly integrity: string
  readonly license: string
  /** Empty for the runtime: its package has none. */
  readonly text: string
}

const NODE_MODULES = 'node_modules/'

/** `inputs` are the files of a bundle, relative to `root`. */
export function partsOf(inputs: readonly string[], root: string): readonly Part[] {
  const places = new Set(inputs.filter(file => file.includes(NODE_MODULES)).map(placeOf))
  return [...places].toSorted().map(place => {
    const { name, license } = manifestAt(join(root, place))
    const file = readdirSync(join(root, place)).find(entry => /^licen[cs]e/i.test(entry))
    if (file === undefined) throw new Error(`${name} has no license file: find its text before releasing it`)
    return { name, license, ...lockedAt(root, place), text: readFileSync(join(root, place, file), 'utf8') }
  })
}

export const runtimePart = (target: Target, root: string): Part => ({
  name: target.runtime,
  ...lockedAt(root, `${NODE_MODULES}${target.runtime}`),
  license: 'MIT',
  text: '',
})

/** The directory of the package, also of one inside another. */
function placeOf(file: string): string {
  const at = file.lastIndexOf(NODE_MODULES) + NODE_MODULES.length
  const [first = '', second = ''] = file.slice(at).split('/')
  return `${file.slice(file.indexOf(NODE_MODULES), at)}${first.startsWith('@') ? `${first}/${second}` : first}`
}

function manifestAt(folder: string): { readonly name: string; readonly license: string } {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    name: string
    license?: unknown
    /** As npm wanted it before 2014. */
    licenses?: readonly { readonly type: string }[]
  }
  const { name, licenses = [] } = manifest
  const license = manifest.license ?? licenses.map(({ type }) => type).join(' OR ')
  if (typeof license !== 'string' || license === '') throw new Error(`${name} does not say its license`)
  return { name, license }
}
