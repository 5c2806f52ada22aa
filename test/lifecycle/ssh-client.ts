/** OpenSSH's programs, against a sandbox that runs. */
import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command, Options, ProjectSandbox, Said } from './project-sandbox.ts'

export class SshClient {
  readonly here: ProjectSandbox
  readonly host: string
  /** The file that `pen ssh-config` wrote. */
  readonly config: string

  private constructor(here: ProjectSandbox, host: string, config: string) {
    this.here = here
    this.host = host
    this.config = config
  }

  static async of(here: ProjectSandbox, ...flags: string[]): Promise<SshClient> {
    const made = await here.pen('ssh-config', '--json', ...flags)
    expect(made).toMatchObject({ code: 0, stderr: '' })
    const { host, file } = JSON.parse(made.stdout)
    return new SshClient(here, host, file)
  }

  /** ssh with these words after the host. */
  ssh(
    words: readonly string[],
    options: Options & { readonly flags?: readonly string[] } = {},
  ): Promise<Said> {
    return this.begin(words, options).ended
  }

  begin(
    words: readonly string[],
    { flags = [], ...options }: Options & { readonly flags?: readonly string[] },
  ): Command {
    return this.here.startOutside(['ssh', '-F', this.config, ...flags, this.host, ...words], options)
  }

  run(...words: string[]): Promise<Said> {
    return this.here.startOutside(words, { timeoutMs: 60_000 }).ended
  }
}

/** A command with its streams and exit code, sftp, scp, rsync, and a large file in both directions. */
export async function provesEveryday(client: SshClient): Promise<void> {
  const { here, host, config } = client
  const { box } = here
  const said = await client.ssh(['cat; echo "$0" >&2; cd ..; pwd; exit 7'], { stdin: 'given\n' })
  expect([said.code, said.stdout]).toEqual([7, 'given\n/home\n'])
  expect((await client.ssh(['kill -9 $$'])).code).toBe(137)

  const large = box.file(join(box.home, 'large'), '')
  writeFileSync(large, randomBytes(2 ** 20))
  const back = `${large}.back`
  const batch = box.file(
    join(box.home, 'batch'),
    `put ${large} one\nrename one two\nchmod 640 two\nln -s two three\nget three ${back}\nls -l two\nrm two\nmkdir d\nrmdir d\nrm three\n`,
  )
  const transfer = await client.run('sftp', '-q', '-F', config, '-b', batch, host)
  expect([transfer.code, transfer.stderr]).toEqual([0, ''])
  expect(transfer.stdout).toMatch(/\n-rw-r-----/)
  expect(readFileSync(back).equals(readFileSync(large))).toBe(true)
  rmSync(back)

  const copy = (from: string, to: string) => client.run('scp', '-q', '-F', config, from, to)
  expect(await copy(large, `${host}:copy`)).toMatchObject({ code: 0, stderr: '' })
  expect(await copy(`${host}:copy`, back)).toMatchObject({ code: 0, stderr: '' })
  expect(readFileSync(back).equals(readFileSync(large))).toBe(true)
  expect(await copy(`${host}:absent`, back)).toMatchObject({ code: 1 })
}
