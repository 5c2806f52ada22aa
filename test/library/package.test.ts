/**
 * What `npm pack` makes and npm installs: imported by Node from another directory, with types for a strict
 * compiler.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { install, usePackage } from './installed-package.ts'
import { onGrounds, PROCESS } from './place.ts'

const ROOT = join(import.meta.dir, '../..')

usePackage()

const PROGRAM = `
import { Sandbox, SandboxError, type ExecResult, type PolicyDocument, type RunningCommand } from 'pen'

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
// @ts-expect-error a backend that this version does not have
void Sandbox.start({ project: '.', backend: 'kubernetes' })
const policy: PolicyDocument = {
  image: { dockerfile: './Dockerfile' },
  mounts: [{ host: '~/.gitconfig', at: '/home/agent/.gitconfig', mode: 'ro' }, { volume: 'cache', at: '/cache' }],
  ports: [{ guest: 3000, host: 3000 }],
}
export async function child(box: Sandbox): Promise<number | null> {
  const running: RunningCommand = await box.spawn('cat', { maxOutput: 1000 })
  running.stdout.pipe(process.stdout)
  running.stdin.end('x')
  running.on('exit', (code, signal) => console.log(code satisfies number | null, signal satisfies string | null, policy))
  return (await running.result()).exitCode
}
`

onGrounds(
  PROCESS.slice(0, 1),
  'the package works when Node imports it elsewhere, finds its pen, and has complete types',
  async place => {
    place.configure({ network: { offline: true } })
    const dir = join(place.root, 'elsewhere')
    install(place, dir)
    const home = join(dir, 'node_modules/pen')
    const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { dependencies?: object }
    // It contains what it needs at run time.
    expect(manifest.dependencies).toBeUndefined()
    // It looks for nothing where it was built.
    expect(readFileSync(join(home, 'dist/index.js'), 'utf8')).not.toContain(ROOT)
    expect(readdirSync(home)).toEqual(expect.arrayContaining(['package.json', 'dist']))
    expect(new Set(readdirSync(join(home, 'dist')))).toEqual(new Set(['index.js', 'pen', 'types']))
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
