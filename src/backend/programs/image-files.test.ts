/** A tree of unknown contents, by a descriptor of its root. */
import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import { viewTools } from '../../plan/tools.ts'
import type { Policy } from '../../policy/policy.ts'
import { follow } from './follow.ts'
import { ImageFiles, UnsupportedImage } from './image-files.ts'
import { surveyImage } from './survey-image.ts'

const all = realpathSync(mkdtempSync(join(tmpdir(), 'pen-image-')))
const outside = join(all, 'outside')
const opened: number[] = []
afterAll(() => {
  for (const fd of opened) closeSync(fd)
  rmSync(all, { recursive: true, force: true })
})
mkdirSync(outside)
writeFileSync(join(outside, 'bash'), 'of the host', { mode: 0o755 })

class Tree {
  readonly root = mkdtempSync(join(all, 'root-'))

  program(path: string, text = path): this {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
    chmodSync(join(this.root, path), 0o755)
    return this
  }

  link(path: string, to: string): this {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    symlinkSync(to, join(this.root, path))
    return this
  }

  files(...foreign: string[]): ImageFiles {
    const fd = openSync(this.root, O_PATH | constants.O_DIRECTORY)
    opened.push(fd)
    return new ImageFiles(fd, ['/proc', ...foreign])
  }

  survey(tools: Partial<Policy['tools']>, path: readonly string[] = [], foreign: readonly string[] = []) {
    const whole: Policy['tools'] = { shell: true, allow: 'shown', exec: 'any', ...tools }
    return viewTools({ tools: whole }, surveyImage(this.files(...foreign), whole, path))
  }
}

const covered = (view: ReturnType<Tree['survey']>): string[] =>
  view.steps.flatMap(step => (step.op === 'cover' || step.op === 'tmpfs' ? [step.at] : [])).toSorted()

describe('a link of an image', () => {
  const tree = new Tree().program('/bin/real').link('/bin/out', join(outside, 'bash'))
  tree.link('/bin/up', '../../../../../../../../../bin/real').link('/bin/round', 'round')
  tree.link('/bin/proc', '/proc/self/root/bin/real').link('/sbin', '/bin')

  test('never leaves its root', () => {
    expect(follow(tree.files(), '/bin/out')).toBeUndefined()
    expect(follow(tree.files(), '/bin/up')?.file).toBe('/bin/real')
    expect(follow(tree.files(), '/sbin/real')?.file).toBe('/bin/real')
  })

  test('with .. behind another link leads where the kernel goes', () => {
    const odd = new Tree().program('/far/away/shell').program('/bin/shell')
    odd.link('/bin/dir', '/far/away/deep').link('/bin/bash', 'dir/../shell').link('/bin/slash', '/bin/bash/')
    mkdirSync(join(odd.root, 'far/away/deep'))
    expect(follow(odd.files(), '/bin/bash')?.file).toBe('/far/away/shell')
    expect(covered(odd.survey({ shell: false }))).toEqual(['/far/away/shell'])
    expect(['/bin/dir', '/bin/slash'].map(path => follow(odd.files(), path))).toEqual([undefined, undefined])
  })

  test('that leads to itself leads nowhere', () => {
    expect(follow(tree.files(), '/bin/round')).toBeUndefined()
  })

  test('into /proc, which differs for every reader, is refused', () => {
    expect(() => follow(tree.files(), '/bin/proc')).toThrow(UnsupportedImage)
  })

  test('to a mount over the image is not the image’s', () => {
    expect(follow(tree.files('/bin'), '/sbin/real')).toBeUndefined()
  })
})

describe('an image', () => {
  test('whose bin is a link gets the link’s target covered', () => {
    const tree = new Tree().program('/stuff/bin/one').link('/bin', 'stuff/bin').link('/sbin', '/odd/place')
    tree.program('/odd/place/two').program('/odd/place/three')
    const view = tree.survey({ allow: ['two'] })
    expect(covered(view)).toEqual(['/odd/place/three', '/stuff/bin'])
    expect(view.executable).toEqual(['/odd/place/two' as never])
  })

  test('is covered wherever its own PATH leads', () => {
    const tree = new Tree().program('/app/tool').program('/app/other').program('/a/b/c/d/e/bin/deep')
    writeFileSync(join(tree.root, 'app/data'), '')
    expect(covered(tree.survey({ allow: ['tool'] }, ['/app', '/a/b/c/d/e/bin']))).toEqual([
      '/a/b/c/d/e/bin',
      '/app/other',
    ])
  })

  test('has its shells covered under every name: link, hard link or copy', () => {
    const tree = new Tree().program('/bin/busybox', 'a shell').program('/usr/bin/git', 'a tool.')
    linkSync(join(tree.root, 'bin/busybox'), join(tree.root, 'bin/applet'))
    tree.program('/bin/zsh', 'another').program('/bin/tool', 'neither')
    tree.link('/bin/ls', 'busybox').program('/usr/bin/copy', 'a shell').link('/usr/bin/sh', '/bin/ls')
    expect(covered(tree.survey({ shell: false }))).toEqual([
      '/bin/applet',
      '/bin/busybox',
      '/bin/zsh',
      '/usr/bin/copy',
    ])
    // A list does not restore one under another name.
    const { steps, notes } = tree.survey({ shell: false, allow: ['applet', 'ls', 'copy', 'git'] })
    expect(steps.flatMap(step => (step.op === 'bind' || step.op === 'link' ? [step.at] : []))).toEqual([
      '/usr/bin/git' as never,
    ])
    expect(notes).toHaveLength(3)
  })

  test('with a multi-call program shows the listed names, and that program', () => {
    const tree = new Tree().program('/bin/multi').link('/bin/ls', 'multi').link('/bin/cat', 'multi')
    const { steps } = tree.survey({ allow: ['ls'] })
    expect(steps.map(step => `${step.op} ${step.at}`)).toEqual([
      'tmpfs /bin',
      'link /bin/ls',
      'bind /bin/multi',
      'seal /bin',
    ])
  })

  test('keeps mounts over it visible, also when they look like directories of programs', () => {
    const tree = new Tree().program('/home/you/bin/project').program('/home/other/bin/tool')
    expect(covered(tree.survey({ allow: [] }, [], ['/home/you/bin']))).toEqual(['/home/other/bin'])
  })

  test('with pipes, newlines and directories among its programs is surveyed like any other', () => {
    const tree = new Tree().program('/bin/new\nline').program('/bin/plain')
    expect(spawnSync('mkfifo', [join(tree.root, 'bin/bash'), join(tree.root, 'bin/pipe')]).status).toBe(0)
    mkdirSync(join(tree.root, 'bin/dash'))
    const view = tree.survey({ shell: false, allow: ['new\nline', 'plain', 'pipe', 'bash'] })
    expect(view.executable).toEqual(['/bin/new\nline', '/bin/plain'] as never)
  })

  test('with non-UTF-8 names is refused: they could not be covered', () => {
    const tree = new Tree().program('/bin/plain')
    expect(tree.survey({ shell: false }).steps).toEqual([])
    const name = Buffer.concat([Buffer.from(join(tree.root, 'bin/')), Buffer.from([0xff, 0x2e])])
    writeFileSync(name, 'x')
    expect(() => tree.survey({ shell: false })).toThrow('has a non-UTF-8 name')
  })

  test('with a shell behind a non-UTF-8 link is refused; other such links are ignored', () => {
    const tree = new Tree().program('/usr/share/tool').link('/bin/plain', '/usr/share/tool')
    const name = Buffer.concat([Buffer.from('/usr/share/'), Buffer.from([0xff])])
    symlinkSync(name, join(tree.root, 'bin/tool'))
    expect(covered(tree.survey({ shell: false }))).toEqual([])
    symlinkSync(name, join(tree.root, 'bin/bash'))
    expect(() => tree.survey({ shell: false })).toThrow('/bin/bash is a link to a non-UTF-8 name')
  })

  test('gets the shells covered of a PATH directory inside another', () => {
    const tree = new Tree().program('/opt/bin/one/bin/bash').program('/opt/bin/one/bin/tool')
    expect(covered(tree.survey({ shell: false }, ['/opt/bin/one/bin', '/opt/bin']))).toEqual([
      '/opt/bin/one/bin/bash',
    ])
    expect(covered(tree.survey({ shell: false, allow: [] }, ['/opt/bin/one/bin', '/opt/bin']))).toEqual([
      '/opt/bin',
    ])
  })

  test('with too many programs outside of directories for programs is refused', () => {
    const tree = new Tree().program('/bin/plain')
    for (let n = 0; n <= 1000; n++) tree.program(`/many/program-${n}`)
    expect(() => tree.survey({ allow: [] }, ['/many'])).toThrow('more than 1000 programs')
    expect(covered(tree.survey({ allow: [] }))).toEqual(['/bin'])
  })

  test('without a list allows all of its own programs to execute, and no mounted ones', () => {
    const tree = new Tree().program('/bin/plain').program('/server').program('/etc/script').program('/work/x')
    expect(tree.survey({ exec: 'listed' }, [], ['/work']).executable.toSorted()).toEqual([
      '/bin',
      '/server',
    ] as never)
  })
})
