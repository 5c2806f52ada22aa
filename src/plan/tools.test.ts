import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { factsFor } from '../../test/arbitrary/tree-model.ts'
import type { FoundTool, HostFacts, ToolFacts } from './facts.ts'
import { showStep } from './show.ts'
import { isShellName } from './system-view.ts'
import { viewTools } from './tools.ts'

const SYSTEM: HostFacts['system'] = [
  { kind: 'tree', path: '/usr' as never },
  { kind: 'link', path: '/bin' as never, to: 'usr/bin' },
  { kind: 'tree', path: '/etc/ssl/certs' as never },
]

const tool = (name: string, extra: Partial<FoundTool> = {}): FoundTool => ({
  name,
  links: [],
  file: `/usr/bin/${name}`,
  shell: isShellName(name),
  needs: undefined,
  implied: false,
  companions: ['/usr/lib/ld.so'],
  ...extra,
})

const NPM = tool('npm', {
  links: [{ at: '/usr/bin/npm', to: '../lib/node_modules/npm/cli.js' }],
  file: '/usr/lib/node_modules/npm/cli.js',
  needs: 'node',
})

function view(tools: object, found: readonly FoundTool[] = [], extra: Partial<ToolFacts> = {}) {
  const policy = policyOf({ tools })
  return viewTools(
    policy,
    factsFor(policy, [], {
      system: SYSTEM,
      tools: {
        directories: ['/usr/bin', '/usr/sbin'],
        strays: [],
        found,
        missing: [],
        shells: ['/usr/bin/bash', '/usr/bin/dash'],
        setsid: '/usr/bin/setsid',
        ...extra,
      },
    }),
  )
}

describe('the tools of a sandbox', () => {
  test('are those that the mounts show, when the policy names none', () => {
    expect(view({})).toEqual({ steps: [], late: [], executable: ['/usr' as never], notes: [] })
  })

  test('are only the listed ones: every directory of programs is covered and sealed', () => {
    expect(view({ allow: ['git'] }, [tool('git')]).steps.map(showStep)).toEqual([
      'tmpfs /usr/bin  (private, 256KiB)',
      'bind ro /usr/bin/git  (system)',
      'seal /usr/bin  (read-only from here)',
      'tmpfs /usr/sbin  (private, 256KiB)',
      'seal /usr/sbin  (read-only from here)',
    ])
  })

  test('keep their place: a link stays a link, and what it leads to is left where it is', () => {
    const steps = view({ allow: ['npm', 'node'] }, [NPM, tool('node')]).steps.map(showStep)
    expect(steps).toContain('link /usr/bin/npm -> ../lib/node_modules/npm/cli.js')
    expect(steps.filter(step => step.includes('bind'))).toEqual(['bind ro /usr/bin/node  (system)'])
  })

  test('are none when the list is empty', () => {
    expect(view({ allow: [] }).steps.every(step => step.op === 'tmpfs' || step.op === 'seal')).toBe(true)
  })

  test('leave pen a way to a terminal that is not among them', () => {
    expect(view({ allow: ['git'] }).late.map(showStep)).toEqual([
      'bind ro /run/pen/setsid from /usr/bin/setsid  (system)',
    ])
    expect(view({ allow: ['git'] }, [], { setsid: undefined }).late).toEqual([])
  })

  test('may be executed together with what belongs to them, and nothing else may', () => {
    expect(view({ allow: ['npm'] }, [NPM]).executable.map(String)).toEqual([
      '/usr/lib/node_modules/npm/cli.js',
      '/usr/lib/ld.so',
      '/run/pen/setsid',
    ])
  })
})

describe('without a shell', () => {
  test('every shell is covered', () => {
    expect(view({ shell: false }).steps.map(showStep)).toEqual([
      'cover /usr/bin/bash  (denied by tools.shell)',
      'cover /usr/bin/dash  (denied by tools.shell)',
    ])
    expect(view({ shell: true }).steps).toEqual([])
  })

  test('a listed shell is not put back, and the plan says so', () => {
    const { steps, executable, notes } = view({ shell: false, allow: ['bash', 'git'] }, [
      tool('bash'),
      tool('git'),
    ])
    expect(steps.map(showStep).join()).not.toContain('bash')
    expect(executable.map(String)).not.toContain('/usr/bin/bash')
    expect(notes).toEqual(['tools.allow lists bash, but it is a shell and tools.shell is false'])
    expect(view({ allow: ['bash'] }, [tool('bash')]).notes).toEqual([])
  })

  test.each(['sh', 'bash', 'bash-static', 'zsh-5.9', 'ksh93', 'static-sh', 'busybox', 'mksh-static'])(
    '%s is a shell',
    name => expect(isShellName(name)).toBe(true),
  )
  test.each(['git', 'shred', 'ssh', 'bashbug', 'fishing', 'sha256sum', 'tclsh', 'esbuild', 'nuget'])(
    '%s is none',
    name => expect(isShellName(name)).toBe(false),
  )
})

describe('a note', () => {
  test('names the interpreter that a listed script lacks', () => {
    expect(view({ allow: ['npm'] }, [NPM]).notes).toEqual(['npm needs node: list it too'])
    expect(view({ allow: ['npm', 'node'] }, [NPM, tool('node')]).notes).toEqual([])
  })

  test('names a tool that the machine does not have, and goes on', () => {
    const { notes, steps } = view({ allow: ['git', 'foo'] }, [tool('git')], { missing: ['foo'] })
    expect(notes).toEqual(['tools.allow lists foo, which the system does not have'])
    expect(steps.map(showStep)).toContain('bind ro /usr/bin/git  (system)')
  })

  test('names a tool that leads out of what the sandbox sees', () => {
    const away = tool('x', { links: [{ at: '/usr/bin/x', to: '/srv/x' }], file: '/srv/x' })
    expect(view({ allow: ['x'] }, [away]).notes).toEqual([
      'x leads to /srv/x, which this policy does not show',
    ])
  })
})
