/** A home and a project for one test, removed afterwards. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sandboxId } from '../src/config/project.ts'

export interface TemporaryProject {
  readonly root: string
  readonly home: string
  readonly workspace: string
  /** The path of the project's live config. */
  readonly stateDir: string
  write(path: string, content: string | Uint8Array): void
  writeLive(name: string, content: string): void
  [Symbol.dispose](): void
}

export function temporaryProject(name = 'project'): TemporaryProject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-test-')))
  const home = join(root, 'home')
  const workspace = join(home, name)
  mkdirSync(workspace, { recursive: true })
  const stateDir = join(home, '.pen', 'sandboxes', sandboxId(workspace))
  const put = (path: string, content: string | Uint8Array) => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content, { mode: 0o600 })
  }
  return {
    root,
    home,
    workspace,
    stateDir,
    write: (path, content) => put(join(workspace, path), content),
    writeLive: (file, content) => put(join(stateDir, file), content),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Runs with another HOME: pen reads the user's home from the environment. */
export async function withHome<T>(home: string, work: () => Promise<T>): Promise<T> {
  const before = process.env['HOME']
  process.env['HOME'] = home
  try {
    return await work()
  } finally {
    if (before === undefined) delete process.env['HOME']
    else process.env['HOME'] = before
  }
}
