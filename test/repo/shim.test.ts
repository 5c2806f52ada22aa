import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clone, makeClone, run } from './clone.ts'

let clone: Clone
beforeAll(() => {
  clone = makeClone()
})
afterAll(() => clone.remove())

const BUILT = 'pen: building…\n'

describe('./pen', () => {
  test('builds on the first call, and stdout is the program’s alone', () => {
    expect(clone.pen(['run', 'a b', '--'])).toEqual({
      code: 0,
      out: `["run","a b","--"] ${tmpdir()}\n`,
      err: BUILT,
    })
  })

  test('prints nothing on the second call', () => {
    expect(clone.pen([])).toEqual({ code: 0, out: `[] ${tmpdir()}\n`, err: '' })
  })

  test('works through links, relative and absolute, and by a relative path', () => {
    const links = join(clone.root, '../links')
    mkdirSync(links)
    symlinkSync(join(clone.root, 'pen'), join(links, 'first'))
    symlinkSync('first', join(links, 'second'))
    for (const argv of [
      ['./second'],
      ['../links/first'],
      [join(links, 'second')],
      ['../pen/pen'],
      ['sh', 'second'],
    ])
      expect(run(argv, links)).toEqual({ code: 0, out: `[] ${links}\n`, err: '' })
    expect(run(['second'], '/', { PATH: `${links}:/usr/bin:/bin` }).out).toBe('[] /\n')
  })

  test('says in pen’s own words that the current directory is gone, or that /proc is', () => {
    const pen = join(clone.root, 'pen')
    const gone = run(['sh', '-c', 'd=$(mktemp -d); cd "$d"; rmdir "$d"; exec "$0" version', pen], '/')
    expect([gone.code, gone.out]).toEqual([2, ''])
    // The shell that starts the script has words of its own, before.
    expect(gone.err).toEndWith(
      'pen: PATH_REFUSED: the current directory no longer exists\n  fix: cd into a project directory\n',
    )
    if (process.getuid?.() !== 0) return
    const bare = run(['unshare', '--mount', 'sh', '-c', 'umount -l /proc; exec "$0" version', pen], '/')
    expect(bare).toEqual({
      code: 125,
      out: '',
      err: 'pen: STATE: /proc is not mounted, and pen cannot run without it\n  fix: mount -t proc proc /proc\n',
    })
  })

  test('costs less than 10 ms more than the binary', () => {
    const time = (path: string): number => {
      const began = performance.now()
      run([join(clone.root, path)], '/')
      return performance.now() - began
    }
    // Alternating, and the fastest of each: the others had to wait for a CPU.
    const times = Array.from({ length: 31 }, () => [time('pen'), time('dist/pen')] as const)
    const [shim, binary] = [0, 1].map(i => Math.min(...times.map(pair => pair[i] ?? Number.NaN)))
    expect((shim ?? Number.NaN) - (binary ?? Number.NaN)).toBeLessThan(10)
  })
})

describe('./pen builds again', () => {
  const rebuilt = (): boolean => clone.pen([]).err === BUILT && clone.pen([]).err === ''

  test('when a source changed', () => {
    clone.write('src/main.ts', 'console.log("changed")')
    expect(clone.pen([])).toEqual({ code: 0, out: 'changed\n', err: BUILT })
  })

  test('when a source was added, and when one was removed', () => {
    clone.write('src/more.ts', 'export const more = 1')
    expect(rebuilt()).toBe(true)
    rmSync(join(clone.root, 'src/more.ts'))
    expect(rebuilt()).toBe(true)
  })

  test('when a source was added with an old time, as tar and rsync do', () => {
    clone.write('src/main.ts', 'console.log("from an archive")')
    utimesSync(join(clone.root, 'src/main.ts'), 1000, 1000)
    expect(clone.pen([]).out).toBe('from an archive\n')
  })

  test('and keeps the old binary, with exit code 125, when the source is broken', () => {
    clone.write('src/main.ts', 'console.log((')
    const ran = clone.pen([])
    expect([ran.code, ran.out]).toEqual([125, ''])
    expect(ran.err).toContain('main.ts:1')
    expect(run([join(clone.root, 'dist/pen')], '/').out).toBe('from an archive\n')
    expect(readdirSync(join(clone.root, 'dist')).sort()).toEqual(['.built', 'index.js', 'pen'])
    clone.write('src/main.ts', 'console.log("mended")')
    expect(clone.pen([]).out).toBe('mended\n')
  })

  test('once, when several start together', async () => {
    rmSync(join(clone.root, 'dist'), { recursive: true })
    const started = Array.from({ length: 4 }, () =>
      Bun.spawn([join(clone.root, 'pen')], { cwd: '/', stdout: 'pipe', stderr: 'pipe' }),
    )
    const ended = await Promise.all(
      started.map(async child => ({
        code: await child.exited,
        out: await new Response(child.stdout).text(),
        err: await new Response(child.stderr).text(),
      })),
    )
    expect(ended.map(({ code, out }) => [code, out])).toEqual(
      Array.from({ length: 4 }, () => [0, 'mended\n']),
    )
    expect(ended.filter(({ err }) => err.includes('building'))).toHaveLength(1)
  })

  test('after a crash left its lock behind', () => {
    rmSync(join(clone.root, 'dist/pen'))
    const dead = Bun.spawnSync(['true']).pid
    symlinkSync(String(dead), join(clone.root, 'dist/.lock'))
    expect(clone.pen([])).toEqual({ code: 0, out: 'mended\n', err: BUILT })
    expect(existsSync(join(clone.root, 'dist/.lock'))).toBe(false)
  })

  test('but not inside a sandbox', () => {
    clone.write('src/main.ts', 'console.log("never built")')
    expect(clone.pen([], { env: { AGENT_IN_SANDBOX: '1' } })).toEqual({ code: 0, out: 'mended\n', err: '' })
    clone.write('src/main.ts', 'console.log("built")')
    expect(clone.pen([]).out).toBe('built\n')
  })
})

describe('./pen in a hostile directory', () => {
  test('runs no tool of that directory, even when PATH points into it', () => {
    const project = join(clone.root, '../project')
    mkdirSync(join(project, 'bin'), { recursive: true })
    const trap = join(project, 'trapped')
    for (const folder of [project, join(project, 'bin')])
      for (const tool of ['find', 'sh', 'node', 'npm', 'ln', 'cmp', 'readlink', 'bun', 'git', 'uname', 'id'])
        writeFileSync(join(folder, tool), `#!/bin/sh\necho ${tool} >>'${trap}'\nexit 1\n`, { mode: 0o755 })
    writeFileSync(join(project, 'bunfig.toml'), 'preload = ["./evil.js"]\n')
    writeFileSync(join(project, '.npmrc'), 'script-shell=./sh\n')
    const env = { PATH: `.::${project}/bin:${process.env['PATH'] ?? ''}` }

    clone.write('src/main.ts', 'console.log("safe")')
    expect(clone.pen([], { cwd: project, env })).toEqual({ code: 0, out: 'safe\n', err: BUILT })
    expect(clone.pen([], { cwd: project, env })).toEqual({ code: 0, out: 'safe\n', err: '' })
    expect(existsSync(trap)).toBe(false)
    // The twin: the traps are real.
    run([join(project, 'bin/find')], project)
    expect(existsSync(trap)).toBe(true)
  })
})
