/** A guest that has taken over QEMU: it speaks to virtiofsd by itself, and is still where a command of `pen run` is. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { adoptOrphans, descendants } from '../conformance/descendants.ts'
import { EVERYBODY } from '../conformance/launcher.ts'
import { onMachine, projectOf, startMachine } from '../vm/machine.ts'

adoptOrphans()

const who = EVERYBODY.at(-1)
const CLIENT = join(import.meta.dir, 'hostile-qemu.py')
const SEED = Number(process.env['PEN_VM_SEED'] ?? Date.now() % 2 ** 31)

interface Outcome {
  readonly seen: Readonly<Record<string, readonly string[]>>
  readonly garbage: number
}

for (const server of ['tree', 'project'] as const)
  onMachine(
    `P1 P2 P3 a QEMU that the guest has taken over gets no more of the ${server}’s server than a command (seed ${SEED})`,
    async () => {
      if (who === undefined) return
      const here = projectOf(who)
      const { box } = here
      try {
        const inside = box.file('inside', 'inside\n')
        const denied = box.file('.env', 'secret\n')
        const guarded = box.file('.envrc', 'export A=1\n')
        const outside = box.file(join(box.home, 'outside'), 'outside\n')
        const readable = box.file(join(box.home, 'readable/file'), 'readable\n')
        await startMachine(here, '--offline', '--read', join(box.home, 'readable'))
        const qemu = descendants().find(({ command }) => /^\S*qemu-system/.test(command))
        const fd = new RegExp(`socket,id=${server},fd=(\\d+)`).exec(qemu?.command ?? '')?.[1]
        // The server of the project has the project as its root.
        const processes = ['self', '1', '4'].map(pid => `/proc/${pid}/cmdline`)
        const paths = [
          inside,
          denied,
          guarded,
          outside,
          readable,
          '/etc/shadow',
          ...processes,
          '/usr/bin/true',
        ].map(path =>
          server === 'project' && path.startsWith(box.project) ? path.slice(box.project.length) : path,
        )
        const client = spawnSync('python3', [CLIENT, String(qemu?.pid), fd ?? '', String(SEED), ...paths], {
          encoding: 'utf8',
          timeout: 100_000,
        })
        expect([client.status, client.stderr]).toEqual([0, ''])
        const { seen, garbage } = JSON.parse(client.stdout) as Outcome
        const reached = Object.values(seen).flat().join('')
        expect(seen[paths[0] ?? '']).toContain('inside\n')
        if (server === 'tree') expect(seen[readable]).toContain('readable\n')
        for (const hidden of ['secret', 'outside', 'root:', 'virtiofsd'])
          expect(reached).not.toContain(hidden)
        expect(garbage).toBeGreaterThan(0)
        const host = (path: string): string => readFileSync(path, 'utf8')
        expect([denied, guarded, outside, readable].map(host)).toEqual([
          'secret\n',
          'export A=1\n',
          'outside\n',
          'readable\n',
        ])
        for (const name of ['device', 'chars']) expect(existsSync(join(box.project, name))).toBe(false)
        expect(lstatSync(join(box.project, 'setuid'), { throwIfNoEntry: false })?.mode ?? 0).toSatisfy(
          mode => (mode & 0o6000) === 0,
        )
        // What it may write, it wrote.
        expect(existsSync(inside)).toBe(false)
      } finally {
        await here.pen('stop')
        box.remove()
      }
    },
    180_000,
  )
