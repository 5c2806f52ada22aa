/**
 * The host's git, for the host's repository. It reads nothing of the working tree, which is the sandbox's to write. It gets
 * the git directory by name and an empty directory as its working tree. It runs no hook, monitor or helper.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmdirSync, statSync } from 'node:fs'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { dirname } from '../../base/posix-path.ts'
import { startProgram } from '../../base/start-program.ts'
import { GIT_ENVIRONMENT } from './git-environment.ts'
import type { GitAnswer, GitCall } from './git-runner.ts'

/** pen's git commands take milliseconds. One that takes this long has a hostile pack or a broken disk. */
const TIMEOUT_MS = 120_000

/** A few objects can name more paths than fit into memory. */
const MAX_OUTPUT = 256 * 1024 * 1024

export class HostGit {
  readonly #commonDir: string
  readonly #empty: string
  readonly #path: string
  readonly #shell: string
  readonly #until: number
  readonly #owner: { readonly uid: number; readonly gid: number } | undefined

  /** No command starts after `until`. `empty` is made here. Without a working tree of its own, git would take the current directory, or `core.worktree`. */
  constructor(commonDir: string, empty: string, until = Number.POSITIVE_INFINITY) {
    this.#until = until
    const [git, shell] = [findTool('git'), findTool('sh')]
    if (git === undefined) throw missingTool('git', 'install git: apt-get install git')
    if (shell === undefined) throw missingTool('sh', 'install a POSIX shell')
    this.#commonDir = commonDir
    this.#path = [...new Set([dirname(git), '/usr/bin', '/bin'])].join(':')
    this.#shell = shell
    const { uid, gid } = statSync(commonDir)
    this.#owner = isHostRoot() && uid !== 0 ? { uid, gid } : undefined
    // Another user cannot enter root's state. The directory is root's, so that user cannot write it either.
    this.#empty = this.#owner === undefined ? empty : mkdtempSync('/tmp/pen-empty-')
    if (this.#owner === undefined) mkdirSync(empty, { recursive: true })
    else chmodSync(this.#empty, 0o755)
  }

  close(): void {
    if (this.#owner !== undefined) rmdirSync(this.#empty)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** As the owner of the repository: what root's pen writes into a user's repository belongs to that user. */
  readonly run = async ({
    script,
    args = [],
    gitDir,
    input = '',
    env,
    inputFrom,
    onOutput,
  }: GitCall): Promise<GitAnswer> => {
    if (Date.now() > this.#until)
      return { code: 137, stdout: Buffer.alloc(0), stderr: 'the sync takes too long' }
    const dir = gitDir === undefined ? this.#commonDir : `${this.#commonDir}/${gitDir}`
    const child = startProgram([this.#shell, '-c', script, 'pen', ...args], {
      cwd: this.#empty,
      env: {
        ...GIT_ENVIRONMENT,
        HOME: '/nonexistent',
        PATH: this.#path,
        GIT_DIR: dir,
        GIT_WORK_TREE: this.#empty,
        ...env,
      },
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      stdin: inputFrom ?? Buffer.from(input),
      stdout: 'pipe',
      stderr: 'pipe',
      ...this.#owner,
    })
    const [stdout, stderr, code] = await Promise.all([
      onOutput === undefined
        ? collect(child.stdout, () => child.kill('SIGKILL'))
        : pass(child.stdout, onOutput, () => child.kill('SIGKILL')),
      new Response(child.stderr).text(),
      child.exited,
    ])
    return stdout === undefined
      ? { code: 137, stdout: Buffer.alloc(0), stderr: 'the answer is too long' }
      : { code, stdout, stderr }
  }
}

/** Undefined when there is too much. */
async function collect(stream: ReadableStream<Uint8Array>, stop: () => void): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    length += chunk.length
    if (length > MAX_OUTPUT) {
      stop()
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function pass(
  stream: ReadableStream<Uint8Array>,
  onOutput: (chunk: Buffer) => void,
  stop: () => void,
): Promise<Buffer> {
  try {
    for await (const chunk of stream) onOutput(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
  } catch (error) {
    stop()
    throw error
  }
  return Buffer.alloc(0)
}
