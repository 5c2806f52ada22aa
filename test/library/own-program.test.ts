/**
 * pen installed by npm in the project of its sandbox: nothing inside can change what the next start runs on the
 * host.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, lstatSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { GAPS } from '../soft/soft-box.ts'
import { install, usePackage } from './installed-package.ts'
import { inPlace, onGrounds, type Place, PROCESS, SOFT } from './place.ts'

usePackage()

const FILES = ['dist/pen', 'dist/index.js', 'package.json'] as const

/** Each runs in the project's root. One that succeeded would make the host run `evil`. */
const ATTACKS = [
  'cp evil node_modules/pen/dist/pen',
  'cp --remove-destination evil node_modules/pen/dist/pen',
  'cat evil >> node_modules/pen/dist/index.js',
  'rm -f node_modules/pen/package.json',
  'mv node_modules/pen/dist/pen node_modules/pen/dist/moved',
  'mv evil node_modules/pen/dist/pen',
  'mv node_modules/pen/dist node_modules/pen/moved',
  'mv node_modules/pen node_modules/moved',
  'mv node_modules moved',
  'mv -T evil-modules node_modules',
  'rm -rf node_modules/pen',
  'ln node_modules/pen/dist/pen hard-link && cp evil hard-link',
  'ln node_modules/pen/dist/index.js hard-link && cat evil >> hard-link',
  'rm -rf node_modules; ln -sfnT evil-modules node_modules',
  'ln -sfnT ../evil-modules/pen node_modules/pen',
  'chmod u+w node_modules/pen/dist/pen && cp evil node_modules/pen/dist/pen',
  "python3 -c \"import os; os.rename('evil-modules/pen', 'node_modules/pen')\"",
]

/** The user's program: it is outside of the project and uses its own pen. */
const program = (place: Place): string => `import { createRequire } from 'node:module'
const { Sandbox } = await import(createRequire(${JSON.stringify(`${place.project}/x.js`)}).resolve('pen'))
const box = await Sandbox.start({ project: ${JSON.stringify(place.project)}, ...JSON.parse(process.argv[2] ?? '{}') })
const done = []
for (const line of JSON.parse(process.argv[3] ?? '[]')) done.push((await box.exec(line)).exitCode)
await box.stop()
console.log(JSON.stringify(done))`

function drive(place: Place, options: object, lines: readonly string[]) {
  const file = place.file(join(place.home, 'program.mjs'), program(place))
  const [node, ...args] = place.argv('node', file, JSON.stringify(options), JSON.stringify(lines))
  const ran = spawnSync(node, args, { cwd: place.home, env: place.env, encoding: 'utf8', timeout: 120_000 })
  return { done: ran.status === 0 ? (JSON.parse(ran.stdout) as number[]) : [], said: ran.stderr }
}

const digests = (place: Place): string[] =>
  FILES.map(name =>
    createHash('sha256')
      .update(readFileSync(join(place.project, 'node_modules/pen', name)))
      .digest('hex'),
  )

/** In the project, and ready to replace pen. */
function prepare(place: Place): string {
  install(place, place.project)
  const mark = join(place.home, 'the-host-ran-it')
  const evil = `#!/bin/sh\ntouch ${mark}\n`
  place.file('evil', evil, 0o755)
  for (const name of ['index.js', 'pen']) place.file(`evil-modules/pen/dist/${name}`, evil, 0o755)
  place.file('evil-modules/pen/package.json', '{ "name": "pen", "exports": "./dist/index.js" }')
  return mark
}

async function claim(place: Place): Promise<void> {
  place.configure({ network: { offline: true } })
  const mark = prepare(place)
  const before = digests(place)
  const link = join(place.project, 'node_modules/.bin/pen')
  const text = readlinkSync(link)
  const first = drive(place, {}, [
    ...ATTACKS,
    // The allowed twins: everything else in the project and in node_modules is writable.
    'mkdir -p node_modules/other node_modules/.bin && echo 1 > node_modules/other/index.js && echo 1 > node_modules/.bin/other',
    'echo 1 > written && mv written renamed',
  ])
  expect(ATTACKS.filter((_, i) => first.done[i] === 0)).toEqual([])
  expect({ ...first, done: first.done.slice(-2) }).toEqual({ done: [0, 0], said: '' })
  expect(digests(place)).toEqual(before)
  // A link cannot hold a mount: pen restores it instead.
  drive(place, {}, ['ln -sfn ../../evil node_modules/.bin/pen'])
  expect([lstatSync(link).isSymbolicLink(), readlinkSync(link)]).toEqual([true, text])
  expect(drive(place, {}, ['true'])).toEqual({ done: [0], said: '' })
  expect([digests(place), existsSync(mark)]).toEqual([before, false])
}

const TITLE = 'P2 P16 a pen that is installed in the project is not changed from inside'
onGrounds(PROCESS, TITLE, claim)
everyEngine(['podman', 'docker'], { podman: 'in turn' })(TITLE, engine => inPlace(engine, claim), 120_000)

onGrounds(PROCESS.slice(-1), 'P20 where pen itself cannot be held, nothing starts', async place => {
  place.configure({ network: { offline: true } })
  prepare(place)
  const own = join(place.project, 'node_modules/pen')
  const refused = (policy: object, why: string): void => {
    const { said } = drive(place, { policy }, ['true'])
    expect(said).toContain('pen itself')
    expect(said).toContain(why)
  }
  refused({ files: { write: ['./node_modules/pen/dist'] } }, 'is a part of it')
  refused({ files: { write: ['./node_modules/pen'] } }, 'is a part of it')
  refused({ mounts: [{ host: './node_modules', at: '/modules', mode: 'rw' }] }, 'mounts it for writing')
  const second = join(place.project, 'second')
  linkSync(join(own, 'dist/pen'), second)
  refused({}, 'hard links')
  rmSync(second)
  expect(drive(place, { policy: { files: { read: ['./node_modules'] } } }, ['true']).done).toEqual([0])
})

const BOUND = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'

/** Only root can make a bind mount. */
const BINDING = process.getuid?.() === 0 ? PROCESS.slice(-1) : []

onGrounds(BINDING, 'P2 P16 a bind mount in the project does not open pen itself', async place => {
  place.configure({ network: { offline: true } })
  const tools = join(place.home, 'tools')
  install(place, tools)
  const own = join(tools, 'node_modules/pen')
  const vendor = dirname(place.file('vendor/.keep', ''))
  const free = dirname(place.file(join(tools, 'free/file'), ''))
  const run = (source: string, line: string) =>
    spawnSync(
      'unshare',
      [
        '--mount',
        'sh',
        '-c',
        BOUND,
        'sh',
        source,
        vendor,
        ...place.argv(join(own, 'dist/pen'), 'run', '--', 'sh', '-c', line),
      ],
      { cwd: place.project, env: place.env, encoding: 'utf8', timeout: 120_000 },
    ).status
  const before = readFileSync(join(own, 'package.json'), 'utf8')
  expect(run(own, 'echo x >> vendor/package.json || mv vendor/dist/pen vendor/dist/moved')).not.toBe(0)
  expect(run(join(own, 'dist'), 'mv vendor/pen vendor/moved || mv vendor moved')).not.toBe(0)
  expect([readFileSync(join(own, 'package.json'), 'utf8'), existsSync(join(own, 'dist/pen'))]).toEqual([
    before,
    true,
  ])
  // The same mount of another directory is writable.
  expect(run(free, 'echo x > vendor/file')).toBe(0)
  expect(readFileSync(join(free, 'file'), 'utf8')).toBe('x\n')
})

onGrounds(SOFT, 'P20 without kernel help pen is not started from the project that it guards', async place => {
  place.configure({ network: { offline: true }, tools: { allow: ['true'] } })
  prepare(place)
  const options = { isolation: 'soft', policy: { acceptGaps: GAPS } }
  expect(drive(place, options, []).said).toContain('the soft backend cannot keep it read-only')
  expect(place.pen('run', '--', 'true')).toMatchObject({
    code: 2,
    said: expect.stringContaining('pen itself'),
  })
  rmSync(join(place.project, 'node_modules'), { recursive: true })
  expect(place.pen('run', '--', 'true').code).toBe(0)
})
