/** The Linux distribution and its install command. */
import { findTool } from '../base/find-tool.ts'
import { textOf } from './finding.ts'

type Installer = 'apt' | 'dnf' | 'pacman' | 'apk' | 'zypper'

export interface Distribution {
  readonly id: string
  readonly name: string
  /** Undefined if pen does not know the package manager. */
  readonly installer: Installer | undefined
}

/** By ID, or by a name in ID_LIKE, which lists the nearest ancestor first. */
const INSTALLERS: Readonly<Record<string, Installer>> = {
  debian: 'apt',
  ubuntu: 'apt',
  fedora: 'dnf',
  rhel: 'dnf',
  centos: 'dnf',
  arch: 'pacman',
  alpine: 'apk',
  suse: 'zypper',
  opensuse: 'zypper',
  'opensuse-leap': 'zypper',
  'opensuse-tumbleweed': 'zypper',
}

const COMMANDS: Readonly<Record<Installer, string>> = {
  apt: 'apt-get install',
  dnf: 'dnf install',
  pacman: 'pacman -S',
  apk: 'apk add',
  zypper: 'zypper install',
}

/** Packages with another name than on Debian. */
const PACKAGE_NAMES: Readonly<Record<string, Partial<Record<Installer, string>>>> = {
  'util-linux': { apk: 'util-linux-misc setpriv' },
  'qemu-system-arm': {
    dnf: 'qemu-system-aarch64',
    pacman: 'qemu-system-aarch64',
    apk: 'qemu-system-aarch64',
  },
  'qemu-system-x86': { dnf: 'qemu-kvm', pacman: 'qemu-base', apk: 'qemu-system-x86_64' },
}

/** Skips lines of `/etc/os-release` that are no assignment. */
export function parseOsRelease(text: string): Distribution {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, key, value] = /^([A-Z_]+)=(.*)$/.exec(line.trim()) ?? []
    if (key !== undefined) fields.set(key, (value ?? '').replace(/^(["'])(.*)\1$/, '$2'))
  }
  const id = fields.get('ID') ?? 'linux'
  const ancestors = [id, ...(fields.get('ID_LIKE') ?? '').split(/\s+/)]
  const known = ancestors.find(name => Object.hasOwn(INSTALLERS, name))
  return {
    id,
    name: fields.get('PRETTY_NAME') ?? fields.get('NAME') ?? id,
    installer: known === undefined ? undefined : INSTALLERS[known],
  }
}

export const thisDistribution = (): Distribution =>
  parseOsRelease(textOf('/etc/os-release') || textOf('/usr/lib/os-release'))

const packageNames = (installer: Installer | undefined, packages: readonly string[]): string[] =>
  packages.flatMap(name => ((installer && PACKAGE_NAMES[name]?.[installer]) ?? name).split(' '))

/** Takes Debian's package names. */
export function installLine({ installer }: Distribution, ...packages: readonly string[]): string {
  const names = packageNames(installer, packages).join(' ')
  if (installer === undefined) return `install ${names} with this system's package manager`
  return `sudo ${COMMANDS[installer]} ${names}`
}

/** The same as words for pen to run, with programs of the system. Undefined when one is missing. */
export function installWords(
  { installer }: Distribution,
  ...packages: readonly string[]
): readonly string[] | undefined {
  if (installer === undefined) return undefined
  const [name = '', ...words] = COMMANDS[installer].split(' ')
  const program = findTool(name)
  const sudo = process.getuid?.() === 0 ? '' : findTool('sudo')
  if (program === undefined || sudo === undefined) return undefined
  return [...(sudo === '' ? [] : [sudo]), program, ...words, ...packageNames(installer, packages)]
}
