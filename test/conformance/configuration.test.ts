import { expect } from 'bun:test'
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import type { Box } from './box.ts'
import { onTheHost } from './conformance.ts'
import { isRoot, PEN } from './launcher.ts'
import { CALLS, configOf, inject, leftovers, pen, start, stateDir } from './pen-command.ts'

interface Config {
  readonly limits?: { readonly pids: number }
  readonly network?: { readonly http?: readonly string[]; readonly deny?: readonly string[] }
}
/** Throws when the document is incomplete. */
const config = (box: Box): Config => JSON.parse(readFileSync(configOf(box), 'utf8')) as Config
const allowed = (box: Box): readonly string[] => config(box).network?.http ?? []
const host = (name: string, i: number): string => `${name}${i}.example.com:443`
const hosts = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => host(name, i))

onTheHost('P19 thirty commands at once lose nothing, and readers always see a complete config', async box => {
  expect((await pen(box, 'allow', ...hosts('old', 10))).code).toBe(0)
  const commands = [
    ...hosts('new', 10).map(name => pen(box, 'allow', name)),
    ...hosts('bad', 10).map(name => pen(box, 'deny', name)),
    ...hosts('old', 10).map(name => pen(box, 'forget', name)),
  ]
  const readers = Array.from({ length: 5 }, () => pen(box, 'plan', '--offline'))
  expect(new Set((await Promise.all([...commands, ...readers])).map(({ code }) => code))).toEqual(
    new Set([0]),
  )
  expect(new Set(allowed(box))).toEqual(new Set(hosts('new', 10)))
  expect(new Set(config(box).network?.deny)).toEqual(new Set(hosts('bad', 10)))
  expect(statSync(configOf(box)).mode & 0o777).toBe(0o600)
  expect(leftovers(box)).toEqual([])
})

onTheHost(
  'P19 a command waits for a slow writer',
  async box => {
    await pen(box, 'allow', host('first', 0))
    const slow = inject('fsync', 'delay_enter=200000')
    const first = start(box, ['allow', host('slow', 0)], slow)
    while (!existsSync(`${configOf(box)}.lock`)) await Bun.sleep(2)
    expect((await pen(box, 'allow', host('fast', 0))).code).toBe(0)
    expect((await first.ended).code).toBe(0)
    expect(allowed(box)).toEqual([host('first', 0), host('slow', 0), host('fast', 0)])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 SIGKILL at any call of an edit leaves the old or the new config, and no lock',
  async box => {
    await pen(box, 'allow', host('keep', 0))
    let killed = 0
    for (const call of CALLS)
      for (const nth of [1, 2, 3, 4]) {
        const before = allowed(box)
        const name = host(`${call}${nth}-`, 0)
        const { code } = await start(box, ['allow', name], inject(call, 'signal=SIGKILL', nth)).ended
        if (code !== 0) killed++
        expect([[...before], [...before, name]]).toContainEqual([...allowed(box)])
        if (code === 0) expect(allowed(box)).toContain(name)
      }
    expect(killed).toBeGreaterThanOrEqual(8)
    const watch = new Stopwatch()
    expect((await pen(box, 'allow', host('last', 0))).code).toBe(0)
    expect(watch.ms).toBeLessThan(1000)
    expect(allowed(box)).toContain(host('last', 0))
    expect(leftovers(box)).toEqual([])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 so does SIGKILL at forty random moments of several commands at once',
  async box => {
    await pen(box, 'allow', host('keep', 0))
    for (let i = 0; i < 20; i++) {
      const before = allowed(box)
      const names = [host('a', i), host('b', i)]
      const runs = names.map(name => start(box, ['allow', name]))
      await Bun.sleep(Math.random() * 45)
      for (const { child } of runs) child.kill('SIGKILL')
      const codes = (await Promise.all(runs.map(({ ended }) => ended))).map(({ code }) => code)
      const after = allowed(box)
      expect(after.slice(0, before.length)).toEqual([...before])
      expect(after.slice(before.length).filter(name => !names.includes(name))).toEqual([])
      // Every reported success is in the file.
      for (const [j, name] of names.entries()) if (codes[j] === 0) expect(after).toContain(name)
    }
    expect((await pen(box, 'forget', host('keep', 0))).code).toBe(0)
    expect([allowed(box).includes(host('keep', 0)), leftovers(box)]).toEqual([false, []])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 a disk error at any call leaves the old or the new config, an error message, and no other file',
  async box => {
    await pen(box, 'allow', host('keep', 0))
    let failed = 0
    for (const [call, errors] of [
      ['fsync', ['EIO', 'ENOSPC', 'EDQUOT']],
      ['rename', ['ENOSPC', 'EROFS']],
      ['pwrite64,write', ['ENOSPC']],
    ] as const)
      for (const error of errors)
        for (const nth of call === 'fsync' ? [1, 2, 3, 4] : [1, 2]) {
          const before = allowed(box)
          const name = host(
            `${call.slice(0, 5)}-${error}${nth}-`.toLowerCase().replaceAll(/[^a-z0-9-]/g, ''),
            0,
          )
          const { code, stderr } = await start(box, ['allow', name], inject(call, `error=${error}`, nth))
            .ended
          expect([[...before], [...before, name]]).toContainEqual([...allowed(box)])
          if (code !== 0) failed++
          if (code !== 0) expect(stderr).toMatch(/pen: STATE: could not write .*\(E[A-Z]+\)/)
          if (code === 0) expect(allowed(box)).toContain(name)
          expect(leftovers(box)).toEqual([])
        }
    expect(failed).toBeGreaterThanOrEqual(8)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 on a full disk the config stays as it was, and can be changed once there is room',
  async box => {
    const { become, uid, gid } = box.launcher.who
    const home = join(box.root, 'small')
    const script = `
      mkdir -p ${home} && mount -t tmpfs -o size=256k,mode=700,uid=${uid},gid=${gid} none ${home} && export HOME=${home}
      pen() { ${become.join(' ')} ${PEN} "$@"; }
      pen allow first.example.com; config=$(echo ${home}/.pen/sandboxes/*/config.json); before=$(cksum < "$config")
      ${become.join(' ')} dd if=/dev/zero of=${home}/fill bs=1k 2>/dev/null
      pen allow second.example.com 2>&1; echo "code $?"
      [ "$before" = "$(cksum < "$config")" ] && echo same; ls -A "$(dirname "$config")" | tr '\\n' ' '; echo
      pen forget first.example.com 2>&1; echo "code $?"; pen policy explain first.example.com:443 | head -1
      rm ${home}/fill; pen allow second.example.com; cat "$config"`
    const ran = Bun.spawnSync(['unshare', '-m', 'sh', '-c', script], { cwd: box.project, env: box.env() })
    const out = ran.stdout.toString()
    expect(out).toMatch(/\(ENOSPC\)|no space/i)
    expect([...out.matchAll(/^code (\d+)$/gm)].map(([, code]) => code)).toEqual(['125', '125'])
    expect(out).toContain('\nsame\nconfig.json \n')
    expect(out).toMatch(/first\.example\.com:443.*allow|allow.*first\.example\.com:443/)
    expect(out.slice(out.lastIndexOf('{\n  "version"'))).toContain('second.example.com:443')
  },
  { only: () => isRoot },
)

onTheHost(
  'P19 a config in the middle of a save is never read as empty',
  async box => {
    await pen(box, 'allow', host('keep', 0))
    for (const half of [
      '',
      '{',
      '{"version":1,"network":{"http":["keep0.exam',
      '{"version":1}{"version":1}',
      '\0\0\0\0',
    ]) {
      writeFileSync(configOf(box), half)
      const { code, stderr } = await pen(box, 'allow', host('new', 0))
      expect([half, code]).toEqual([half, 2])
      expect(stderr).toContain('config.json:')
      expect(readFileSync(configOf(box), 'utf8')).toBe(half)
      expect((await box.sh('echo ran > mark')).code).toBe(2)
    }
    expect([existsSync(join(box.project, 'mark')), leftovers(box)]).toEqual([false, []])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 an editor that saves all the time, and pen, leave a complete config',
  async box => {
    await pen(box, 'allow', host('keep', 0))
    const saved = new Set<number | undefined>([undefined])
    let pids = 100
    const editor = setInterval(() => {
      const draft = join(stateDir(box), '.config.json.swp')
      box.file(draft, JSON.stringify({ ...config(box), limits: { pids: ++pids } }), 0o600)
      saved.add(pids)
      renameSync(draft, configOf(box))
    }, 7)
    const done = await Promise.all(hosts('new', 8).map(name => pen(box, 'allow', name)))
    clearInterval(editor)
    for (const { code, stderr } of done) expect([stderr, code === 0 || code === 125]).toEqual([stderr, true])
    expect(saved.has(config(box).limits?.pids)).toBe(true)
    expect((await pen(box, 'plan', '--offline')).code).toBe(0)
  },
  { users: 'ordinary' },
)
