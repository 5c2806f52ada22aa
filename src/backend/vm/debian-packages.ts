/**
 * Files of Debian's packages, without installing any. apt checks the packages by the signatures of the machine's own
 * sources. Its lists and its cache are in a directory of pen's, so nothing of the system changes.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { capture } from '../../base/spawn.ts'

const MINUTES = 60_000
const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

/** Debian's release after the one of this machine, for a package that this one lacks. */
const NEXT_RELEASE: Readonly<Record<string, string>> = { bookworm: 'trixie' }

export class DebianPackages {
  readonly #apt = required('apt-get')
  readonly #dpkg = required('dpkg-deb')
  readonly #dir: string

  /** `dir` is empty, and the caller removes it. */
  constructor(dir: string) {
    this.#dir = dir
    for (const name of ['lists/partial', 'archives/partial', 'debs', 'etc'])
      mkdirSync(`${dir}/${name}`, { recursive: true })
  }

  /** Extracts the packages into `to`. Uses the machine's lists, and new ones when those are absent or old. */
  async extract(names: readonly string[], to: string): Promise<void> {
    if (await this.#download(names, [])) return await this.#unpack(to)
    const sources = [`Dir::State::Lists=${this.#dir}/lists`]
    await this.#update(sources)
    if (!(await this.#download(names, sources))) throw notFetched(names, this.#problem)
    await this.#unpack(to)
  }

  /** The same from Debian's next release. False when pen knows none for this machine. */
  async extractNewer(names: readonly string[], to: string): Promise<boolean> {
    const [, release = ''] = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
    const next = NEXT_RELEASE[release]
    const format = '$(REPO_URI) $(RELEASE) $(COMPONENT)'
    const { stdout } = await this.#run([], ['indextargets', '--format', format, 'Created-By: Packages'])
    const line = stdout.split('\n').find(target => target.split(' ')[1] === release)
    const [address, , component] = line?.split(' ') ?? []
    if (next === undefined || address === undefined) return false
    const list = `${this.#dir}/etc/sources.list`
    writeFileSync(list, `deb ${address} ${next} ${component}\n`)
    const sources = [
      `Dir::State::Lists=${this.#dir}/lists`,
      `Dir::Etc::SourceList=${list}`,
      'Dir::Etc::SourceParts=/dev/null',
    ]
    await this.#update(sources)
    if (!(await this.#download(names, sources))) throw notFetched(names, this.#problem)
    await this.#unpack(to)
    return true
  }

  /** A field of a package, by its name. */
  async field(name: string, field: string): Promise<string> {
    if (!(await this.#download([name], []))) {
      const sources = [`Dir::State::Lists=${this.#dir}/lists`]
      await this.#update(sources)
      if (!(await this.#download([name], sources))) throw notFetched([name], this.#problem)
    }
    const [file] = this.#files().filter(each => each.startsWith(`${name}_`))
    const { stdout } = await capture([this.#dpkg, '--field', `${this.#dir}/debs/${file}`, field], {
      env,
      cwd: '/',
      timeoutMs: MINUTES,
    })
    return stdout.trim()
  }

  #problem = ''

  async #download(names: readonly string[], sources: readonly string[]): Promise<boolean> {
    const { code, stderr } = await this.#run(sources, ['download', ...names])
    this.#problem = stderr
    return code === 0
  }

  async #update(sources: readonly string[]): Promise<void> {
    const { code, stderr } = await this.#run(sources, ['update'])
    if (code !== 0) throw notFetched(['the package lists'], stderr)
  }

  async #run(sources: readonly string[], words: readonly string[]) {
    const settings = [
      ...sources,
      `Dir::Cache=${this.#dir}`,
      'APT::Sandbox::User=root',
      'Acquire::Languages=none',
    ]
    return await capture([this.#apt, '--quiet', ...settings.flatMap(setting => ['-o', setting]), ...words], {
      env,
      cwd: `${this.#dir}/debs`,
      timeoutMs: 5 * MINUTES,
    })
  }

  readonly #unpacked = new Set<string>()

  async #unpack(to: string): Promise<void> {
    for (const file of this.#files()) {
      if (this.#unpacked.has(file)) continue
      this.#unpacked.add(file)
      const argv = [this.#dpkg, '--extract', `${this.#dir}/debs/${file}`, to]
      const { code, stderr } = await capture(argv, { env, cwd: '/', timeoutMs: MINUTES })
      if (code !== 0) throw notFetched([file], stderr)
    }
  }

  #files(): string[] {
    return readdirSync(`${this.#dir}/debs`).filter(name => name.endsWith('.deb'))
  }
}

/**
 * How to fill a directory for `--vm-files`, by package manager. Untested. virtiofsd is installed, because its libraries
 * belong to the system. A module that is in none of the packages is built into the kernel.
 */
const BY_HAND: Readonly<Record<string, string>> = {
  dnf: 'sudo dnf install virtiofsd cpio dnf-plugins-core && dnf download kernel-core kernel-modules-core kernel-modules busybox && for p in *.rpm; do rpm2cpio "$p" | cpio -idm; done',
  pacman:
    'sudo pacman -S virtiofsd && sudo pacman -Swdd --cachedir . linux busybox && for p in *.pkg.tar.zst; do tar -xf "$p"; done',
  apk: 'sudo apk add virtiofsd && apk fetch linux-virt busybox-static && for p in *.apk; do tar -xzf "$p"; done',
}

export const fillByHand = (has: (manager: string) => boolean): string | undefined =>
  Object.entries(BY_HAND).find(([manager]) => has(manager))?.[1]

function required(name: string): string {
  const tool = findTool(name)
  if (tool !== undefined) return tool
  const fill = fillByHand(manager => findTool(manager) !== undefined)
  throw new PenError('BACKEND', {
    what: `pen takes the kernel of the virtual machine from Debian's packages, and ${name} is not installed here`,
    hint:
      fill === undefined
        ? 'name a directory with the files of packages: pen build --isolation vm --vm-files DIR'
        : `in an empty directory: ${fill}; then in the project: pen build --isolation vm --vm-files DIR`,
  })
}

const notFetched = (what: readonly string[], stderr: string): PenError =>
  new PenError('BACKEND', {
    what: `apt could not fetch ${what.join(', ')} for the virtual machine (${stderr.trim().split('\n').at(-1) ?? 'no answer'})`,
    hint: 'with a network connection, run: pen build --isolation vm. Later starts need no network. Or copy ~/.pen/cache/vm of another machine, and run: pen build --isolation vm --vm-files DIR',
  })
