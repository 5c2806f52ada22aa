/** What `npm pack` would hand out: imported by Node from another directory, with types that a strict compiler takes. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { cpSync, linkSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildTypes } from '../../scripts/build-library.ts'
import { PEN } from '../conformance/launcher.ts'
import { onGrounds, type Place, PROCESS } from './place.ts'
import { LIBRARY } from './program.ts'

const ROOT = join(import.meta.dir, '../..')

interface Manifest {
  readonly files: readonly string[]
  readonly dependencies?: object
}

/** All that `files` of package.json names, in node_modules of a project that has nothing else. */
async function install(place: Place): Promise<string> {
  const dir = join(place.root, 'elsewhere')
  const home = join(dir, 'node_modules/pen')
  mkdirSync(join(home, 'dist'), { recursive: true })
  const text = await Bun.file(join(ROOT, 'package.json')).text()
  const manifest = JSON.parse(text) as Manifest
  expect(manifest.files).toEqual(['dist/pen', 'dist/index.js', 'dist/types'])
  // What it needs at run time is in it.
  expect(manifest.dependencies).toBeUndefined()
  place.file(join(home, 'package.json'), text)
  buildTypes(join(home, 'dist'))
  cpSync(LIBRARY, join(home, 'dist/index.js'))
  try {
    linkSync(PEN, join(home, 'dist/pen'))
  } catch {
    cpSync(PEN, join(home, 'dist/pen'))
  }
  return dir
}

const PROGRAM = `
import { Sandbox, SandboxError, type ExecResult } from 'pen'

export async function test(project: string): Promise<ExecResult> {
  await using box = await Sandbox.start({ project, policy: { profile: 'coding', network: { offline: true } }, backend: 'process' })
  box.on('denial', ({ target, permission }) => console.log(target, permission satisfies string | null))
  await box.files.write('a.txt', 'a')
  for await (const { stream, bytes } of await box.spawn(['cat'])) console.log(stream, bytes.length)
  try {
    return await box.exec(['npm', 'test'], { timeout: 60_000, signal: AbortSignal.timeout(90_000) })
  } catch (error) {
    if (error instanceof SandboxError && error.retry) console.log(error.permission)
    throw error
  }
}
// @ts-expect-error a key that no policy has
void Sandbox.start({ project: '.', policy: { netwrok: {} } })
`

onGrounds(
  PROCESS.slice(0, 1),
  'the package is imported by Node in another directory, finds its pen, and its types are whole',
  async place => {
    place.configure({ network: { offline: true } })
    const dir = await install(place)
    const script = `import { Sandbox } from 'pen'
const box = await Sandbox.start({ project: ${JSON.stringify(place.project)} })
console.log((await box.exec(['echo', 'from elsewhere'])).stdout.trim())
await box.stop()`
    place.file(join(dir, 'program.mjs'), script)
    const ran = spawnSync('node', [join(dir, 'program.mjs')], {
      cwd: '/',
      env: place.env,
      encoding: 'utf8',
      timeout: 60_000,
    })
    expect({ code: ran.status, stdout: ran.stdout, stderr: ran.stderr }).toEqual({
      code: 0,
      stdout: 'from elsewhere\n',
      stderr: '',
    })

    place.file(join(dir, 'program.ts'), PROGRAM)
    mkdirSync(join(dir, 'node_modules/@types'), { recursive: true })
    for (const name of ['node', 'undici-types'])
      cpSync(
        join(ROOT, 'node_modules', name === 'node' ? '@types/node' : name),
        join(dir, 'node_modules', name === 'node' ? '@types/node' : name),
        { recursive: true },
      )
    const options = {
      strict: true,
      target: 'es2022',
      lib: ['es2022', 'esnext.disposable', 'dom'],
      module: 'nodenext',
      types: ['node'],
      noEmit: true,
    }
    place.file(join(dir, 'package.json'), '{ "type": "module" }')
    place.file(
      join(dir, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['program.ts'] }),
    )
    const checked = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', dir], { encoding: 'utf8' })
    expect(checked.stdout).toBe('')
    expect(checked.status).toBe(0)
  },
)
