/** Real servers outside: OpenSSH and PostgreSQL, a git repository and an npm registry made of files. */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { World } from './world.ts'
import { UP } from './zones.ts'

function must(argv: readonly string[], cwd: string): void {
  const [program = '', ...rest] = argv
  const { status, stderr } = spawnSync(program, rest, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
}

/** `www/git/repo.git`, for plain HTTP and for SSH. */
export const makeRepository = (dir: string): string =>
  makeBare(dir, 'repo', { README: 'from the repository\n' })

function makeBare(dir: string, name: string, files: Readonly<Record<string, string | object>>): string {
  const work = join(dir, `work-${name}`)
  const bare = join(dir, `www/git/${name}.git`)
  // Made by another test file, which shares this world.
  if (existsSync(bare)) return bare
  const git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']
  must([...git, 'init', '-q', work], dir)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(work, path)), { recursive: true })
    writeFileSync(join(work, path), typeof content === 'string' ? content : `${JSON.stringify(content)}\n`)
  }
  must([...git, 'add', '.'], work)
  must([...git, 'commit', '-qm', 'one'], work)
  must([...git, 'clone', '-q', '--bare', work, bare], dir)
  must([...git, 'update-server-info'], bare)
  return bare
}

/** One package, `tiny`, that npm can install. */
export function makeRegistry(dir: string, origin: string): void {
  const source = join(dir, 'tiny/package')
  mkdirSync(source, { recursive: true })
  mkdirSync(join(dir, 'www/npm'), { recursive: true })
  writeFileSync(
    join(source, 'package.json'),
    JSON.stringify({ name: 'tiny', version: '1.0.0', main: 'index.js' }),
  )
  writeFileSync(join(source, 'index.js'), "module.exports = 'tiny works'\n")
  const tarball = join(dir, 'www/npm/tiny-1.0.0.tgz')
  must(['tar', '-czf', tarball, '-C', join(dir, 'tiny'), 'package'], dir)
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  const dist = { tarball: `${origin}/files/npm/tiny-1.0.0.tgz`, integrity }
  const version = { name: 'tiny', version: '1.0.0', main: 'index.js', dist }
  const document = { name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
  writeFileSync(join(dir, 'www/npm/tiny'), JSON.stringify(document))
}

/** One crate, `tiny`, in a registry whose index is a git repository. Once: test files share the world. */
export function makeCrates(dir: string, origin: string): void {
  const source = join(dir, 'crate/tiny-1.0.0')
  if (existsSync(source)) return
  mkdirSync(join(source, 'src'), { recursive: true })
  writeFileSync(join(source, 'Cargo.toml'), '[package]\nname = "tiny"\nversion = "1.0.0"\n')
  writeFileSync(join(source, 'src/lib.rs'), '')
  const crate = join(dir, 'www/crates/tiny/1.0.0/download')
  mkdirSync(dirname(crate), { recursive: true })
  must(['tar', '-czf', crate, '-C', join(dir, 'crate'), 'tiny-1.0.0'], dir)
  const cksum = createHash('sha256').update(readFileSync(crate)).digest('hex')
  const entry = { name: 'tiny', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false }
  const index = { 'config.json': { dl: `${origin}/files/crates` }, 'ti/ny/tiny': entry }
  makeBare(dir, 'index', index)
}

/** A package for pip, without code. */
export function makeWheel(dir: string): void {
  const script = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tiny-1.0.dist-info/RECORD', '')`
  must(['/usr/bin/python3', '-c', script, join(dir, 'www/tiny-1.0-py3-none-any.whl')], dir)
  mkdirSync(join(dir, 'www/simple/tiny'), { recursive: true })
  const link = '<a href="/files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'
  writeFileSync(join(dir, 'www/simple/tiny/index.html'), link)
}

/** The path of a key for `root`, or undefined when there is no sshd here. */
let sshd: Promise<string | undefined> | undefined

/** Once for all test files, which share this world. */
export const startSshd = (world: World): Promise<string | undefined> => (sshd ??= startOneSshd(world))

async function startOneSshd(world: World): Promise<string | undefined> {
  const program = ['/usr/sbin/sshd', '/usr/bin/sshd'].find(existsSync)
  if (program === undefined) return undefined
  const { dir } = world
  for (const key of ['host-key', 'user-key'])
    must(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', join(dir, key)], dir)
  mkdirSync('/run/sshd', { recursive: true })
  const options = [
    ...['Port=22', `ListenAddress=${UP}`, `HostKey=${join(dir, 'host-key')}`, 'UsePAM=no', 'PidFile=none'],
    ...[
      'StrictModes=no',
      `AuthorizedKeysFile=${join(dir, 'user-key.pub')}`,
      'PermitRootLogin=prohibit-password',
    ],
  ].flatMap(option => ['-o', option])
  background(world, ['timeout', '1200', program, '-D', '-e', '-f', '/dev/null', ...options])
  await untilOpen(world, 22)
  return join(dir, 'user-key')
}

/** False when there is no PostgreSQL here. Every client may log in as `pentest`. */
export async function startPostgres(world: World): Promise<boolean> {
  const [initdb] = globSync('/usr/lib/postgresql/*/bin/initdb')
  if (initdb === undefined) return false
  const data = join(world.dir, 'postgres')
  mkdirSync(data)
  must(['chown', 'pentest', data], '/')
  chmodSync(data, 0o700)
  const asUser = ['setpriv', '--reuid=pentest', '--regid=pentest', '--init-groups']
  must([...asUser, initdb, '-D', data, '--no-sync', '--auth=trust', '--no-instructions', '--no-locale'], data)
  appendFileSync(join(data, 'pg_hba.conf'), 'host all all all trust\n')
  const settings = [
    `listen_addresses=${UP}`,
    `unix_socket_directories=${data}`,
    'fsync=off',
    'shared_buffers=4MB',
  ]
  const postgres = [
    initdb.replace(/initdb$/, 'postgres'),
    '-D',
    data,
    ...settings.flatMap(text => ['-c', text]),
  ]
  background(world, [...asUser, 'timeout', '600', ...postgres])
  await untilOpen(world, 5432)
  return true
}

/** Its input closes with this process, however that ends. */
const UNTIL_WE_ARE_GONE = '"$@" & cat >/dev/null; kill $!'

function background(world: World, argv: readonly string[]): void {
  const [program = '', ...rest] = [...world.on('outside'), 'sh', '-c', UNTIL_WE_ARE_GONE, 'sh', ...argv]
  spawn(program, rest, { stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' }).unref()
}

async function untilOpen(world: World, port: number): Promise<void> {
  const probe = [...world.on('outside'), 'bash', '-c', `exec 3<>/dev/tcp/${UP}/${port}`]
  const [program = '', ...rest] = probe
  for (let tries = 0; tries < 200; tries++) {
    if (spawnSync(program, rest).status === 0) return
    await Bun.sleep(25)
  }
  throw new Error(`nothing listens at port ${port}`)
}
