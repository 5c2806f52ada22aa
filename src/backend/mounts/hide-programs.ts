/**
 * The tool policy in a container, before anything of its image has run. Directories of programs are covered, and listed
 * programs are mounted back at their paths. Shells are covered everywhere. This works by descriptors of the container's
 * root, in a hidden mode of pen.
 */
import { closeSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { findBeneath, tryOpenBeneath } from '../../base/beneath/open-beneath.ts'
import { errnoOf, PenError } from '../../base/error.ts'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import type { Step } from '../../plan/plan.ts'
import { viewTools } from '../../plan/tools.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import { ImageFiles, UnsupportedImage } from '../programs/image-files.ts'
import { surveyImage } from '../programs/survey-image.ts'
import {
  attach,
  bind,
  cloneTree,
  mountScratch,
  NOEXEC,
  NOSUID_NODEV,
  RDONLY,
  READ_ONLY,
  setAttributes,
} from './mount-calls.ts'

export interface ProgramOrder {
  readonly tools: Policy['tools']
  /** The directories of the image's PATH. */
  readonly path: readonly string[]
  /** Mount points whose files are not the image's. */
  readonly foreign: readonly string[]
  /** Those of `foreign` that stay visible when a parent is covered, because the policy mounts them. */
  readonly kept: readonly string[]
  /** The loader with which the image starts pen itself. */
  readonly loader: string | undefined
}

export type ProgramAnswer =
  /** Files, and whole directories, that may be executed when only listed programs may. */
  | { readonly executable: readonly string[]; readonly notes: readonly string[] }
  | { readonly failed: string }
  /** Why pen cannot enforce the tool policy in this image. */
  | { readonly odd: string }

export function hidePrograms(order: ProgramOrder, root: number, emptyFile: string): ProgramAnswer {
  const files = new ImageFiles(root, order.foreign)
  try {
    const { steps, executable, notes } = viewTools(order, surveyImage(files, order.tools, order.path))
    const loader = order.loader === undefined ? undefined : files.real(order.loader)
    new Hiding(root, emptyFile).carryOut(steps, order.kept)
    return { executable: [...executable, ...(loader === undefined ? [] : [loader])], notes }
  } catch (error) {
    if (error instanceof UnsupportedImage) return { odd: error.message }
    if (error instanceof CallFailed || (error instanceof Error && errnoOf(error) !== undefined))
      return { failed: error.message }
    throw error
  } finally {
    files.close()
  }
}

class Hiding {
  readonly #root: number
  readonly #emptyFile: string

  constructor(root: number, emptyFile: string) {
    this.#root = root
    this.#emptyFile = emptyFile
  }

  /** Everything that is mounted back is cloned before anything is covered. */
  carryOut(steps: readonly Step[], kept: readonly string[]): void {
    const covered = steps.flatMap(step => (step.op === 'tmpfs' ? [step.at] : []))
    const inCovered = kept.filter(path => covered.some(around => path !== around && isWithin(path, around)))
    // Each includes the mounts below it.
    const staying = inCovered.filter(
      path => !inCovered.some(other => path !== other && isWithin(path, other)),
    )
    const shown = steps.flatMap(step => (step.op === 'bind' ? [step.at] : []))
    const trees = new Map([
      ...staying.map(path => [path, this.#take(path, 0)] as const),
      ...shown.map(path => [path, this.#take(path, READ_ONLY)] as const),
    ])
    for (const step of steps) {
      this.#act(step, trees)
      if (step.op === 'tmpfs')
        for (const path of staying) if (isWithin(path, step.at)) this.#putBack(path, trees.get(path))
    }
  }

  #act(step: Step, trees: ReadonlyMap<string, Tree>): void {
    switch (step.op) {
      case 'tmpfs':
        this.#at(step.at, fd =>
          mountScratch(fd, `mode=${step.mode.toString(8)},size=${step.size}`, NOSUID_NODEV | NOEXEC),
        )
        break
      case 'link':
        this.#at(dirname(step.at), fd => symlinkSync(step.to, `/proc/self/fd/${fd}/${basename(step.at)}`))
        break
      case 'bind':
        this.#putBack(step.at, trees.get(step.at))
        break
      case 'seal':
        this.#at(step.at, fd => setAttributes(fd, RDONLY))
        break
      case 'cover':
        this.#at(step.at, fd => this.#at(this.#emptyFile, empty => bind(empty, fd, READ_ONLY)))
        break
      case 'file':
      case 'devices':
      case 'processes':
        throw new PenError('INTERNAL', { what: `tools are not hidden by ${step.op}` })
    }
  }

  #take(path: string, attributes: number): Tree {
    const tree = findBeneath(this.#root, path, ({ fd, kind }) => ({ fd: cloneTree(fd), kind }))
    if (tree === undefined) throw new UnsupportedImage(`${path} is gone`)
    if (attributes !== 0) setAttributes(tree.fd, attributes)
    return tree
  }

  #putBack(path: string, tree: Tree | undefined): void {
    if (tree === undefined) return
    for (const above of this.#missing(dirname(path))) this.#inDirectoryOf(above, at => mkdirSync(at))
    this.#inDirectoryOf(path, at =>
      tree.kind === 'directory' ? mkdirSync(at) : writeFileSync(at, '', { flag: 'wx', mode: 0o444 }),
    )
    this.#at(path, fd => attach(tree.fd, fd))
    closeSync(tree.fd)
  }

  /** Outermost first. */
  #missing(directory: string): string[] {
    if (findBeneath(this.#root, directory, () => true) === true) return []
    return [...this.#missing(dirname(directory)), directory]
  }

  #inDirectoryOf(path: string, act: (at: string) => void): void {
    this.#at(dirname(path), fd => act(`/proc/self/fd/${fd}/${basename(path)}`))
  }

  #at(path: string, act: (fd: number) => void): void {
    const fd = tryOpenBeneath(this.#root, path)
    if (fd === undefined) throw new UnsupportedImage(`${path} is gone`)
    try {
      act(fd)
    } finally {
      closeSync(fd)
    }
  }
}

interface Tree {
  readonly fd: number
  readonly kind: 'file' | 'directory' | 'link'
}
