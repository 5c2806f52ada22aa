import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plan, Step } from '../../plan/plan.ts'
import type { GuestPath } from '../../policy/files/path.ts'
import { withImage } from './image-tree.ts'

const tmpfs = (at: string): Step => ({ op: 'tmpfs', at: at as GuestPath, size: 1 as never, mode: 0o755 })
const file = (at: string, text: string): Step => ({ op: 'file', at: at as GuestPath, text })
const IMAGE = { id: '', passwd: 'root:x:0:0::/:/bin/ash\n', group: '', volumes: [], path: '/opt/bin:/bin' }

function shown(make: (tree: string) => void, steps: readonly Step[]): Plan & { readonly lines: string[] } {
  const tree = mkdtempSync(join(tmpdir(), 'pen-image-'))
  try {
    make(tree)
    const plan = withImage({ steps, env: [] } as unknown as Plan, tree, IMAGE)
    const lines = plan.steps.map(step =>
      step.op === 'bind'
        ? `${step.mode} ${step.from.replace(tree, 'IMAGE')} ${step.at}`
        : step.op === 'link'
          ? `${step.at} -> ${step.to}`
          : `${step.op} ${step.at}`,
    )
    return { ...plan, lines }
  } finally {
    rmSync(tree, { recursive: true })
  }
}

test('an image is shown read-only, in parts where the plan mounts something that the image lacks', () => {
  const { lines, env } = shown(
    tree => {
      for (const dir of ['usr/bin', 'home/other', 'var/tmp', 'proc', 'dev', 'run/x', 'etc/ssl'])
        mkdirSync(join(tree, dir), { recursive: true })
      symlinkSync('usr/bin', join(tree, 'bin'))
      for (const name of ['etc/passwd', 'etc/os-release', 'note']) writeFileSync(join(tree, name), '')
    },
    [file('/etc/passwd', 'agent:x:1:1::/home/agent:/bin/bash\n'), tmpfs('/home/agent'), tmpfs('/var/tmp')],
  )
  expect(lines.sort((a, b) => (a < b ? -1 : 1))).toEqual([
    '/bin -> usr/bin',
    'devices /dev',
    'file /etc/passwd',
    'processes /proc',
    'ro IMAGE/etc/os-release /etc/os-release',
    'ro IMAGE/etc/ssl /etc/ssl',
    'ro IMAGE/home/other /home/other',
    'ro IMAGE/note /note',
    'ro IMAGE/usr /usr',
    'ro IMAGE/var /var',
    'tmpfs /home/agent',
    'tmpfs /var/tmp',
  ])
  expect(env).toEqual([{ name: 'PATH', value: '/opt/bin:/bin', secret: false }])
})

test('a link of a hostile image stays a link, and no mount leads through it', () => {
  const { lines, steps } = shown(
    tree => {
      mkdirSync(join(tree, 'var'))
      for (const [at, to] of [
        ['etc', '/root'],
        ['home', '/'],
        ['var/tmp', '/etc'],
        ['usr', '../../..'],
      ] as const)
        symlinkSync(to, join(tree, at))
    },
    [file('/note', 'x'), tmpfs('/var/tmp'), tmpfs('/home/agent')],
  )
  expect(lines.filter(line => line.startsWith('ro '))).toEqual([])
  expect(lines).toContain('/usr -> ../../..')
  for (const onTheWay of ['/home -> /', '/etc -> /root', '/var/tmp -> /etc'])
    expect(lines).not.toContain(onTheWay)
  expect(steps.find(({ at }) => at === '/note')).toMatchObject({ op: 'link' })
})
