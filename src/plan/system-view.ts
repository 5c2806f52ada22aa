/**
 * The part of the host's system that a sandbox sees, read-only: what programs need to run, and nothing that tells of
 * the host's people, secrets or services. Home, `/var`, `/run`, `/srv`, other mounts and most of `/etc` are absent.
 */

/** Programs, libraries and the loader. Each may be a directory or, on merged systems, a link into `/usr`. */
export const SYSTEM_ROOTS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/nix/store',
  '/gnu/store',
]

/** More toolchains, for the profiles in which people build things. */
export const TOOLCHAIN_ROOTS = ['/opt', '/home/linuxbrew/.linuxbrew']

/** What programs read from `/etc`. Private keys, password hashes, machine identity and host names are not among it. */
export const SYSTEM_CONFIG = [
  '/etc/alternatives',
  '/etc/bash.bashrc',
  '/etc/bash_completion.d',
  '/etc/ca-certificates',
  '/etc/ca-certificates.conf',
  '/etc/crypto-policies',
  '/etc/debian_version',
  '/etc/fonts',
  '/etc/gai.conf',
  '/etc/inputrc',
  '/etc/java-11-openjdk',
  '/etc/java-17-openjdk',
  '/etc/java-21-openjdk',
  '/etc/java-25-openjdk',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/locale.alias',
  '/etc/localtime',
  '/etc/lsb-release',
  '/etc/magic',
  '/etc/maven',
  '/etc/mime.types',
  '/etc/os-release',
  '/etc/perl',
  '/etc/pki/ca-trust',
  '/etc/pki/tls/cert.pem',
  '/etc/pki/tls/certs',
  '/etc/protocols',
  '/etc/python3',
  '/etc/python3.11',
  '/etc/python3.12',
  '/etc/python3.13',
  '/etc/redhat-release',
  '/etc/services',
  '/etc/skel',
  '/etc/ssl/cert.pem',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
  '/etc/terminfo',
  '/etc/timezone',
  '/etc/vim',
]

/** Toolchains below the host user's home, for the `dev` profile: programs only, no credentials or caches. */
export const HOME_TOOLCHAINS = [
  '.asdf',
  '.bun/bin',
  '.cargo/bin',
  '.deno/bin',
  '.fnm',
  '.juliaup',
  '.local/bin',
  '.local/lib',
  '.local/share/fnm',
  '.local/share/mise/installs',
  '.local/share/pnpm',
  '.local/share/uv/python',
  '.local/share/uv/tools',
  '.nvm',
  '.pyenv',
  '.rbenv',
  '.rustup',
  '.sdkman/candidates',
  '.volta',
  'go/bin',
]

/** Where programs are looked for inside. */
export const SYSTEM_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Directories whose files are programs, wherever they stand in a tree of the system. */
export const PROGRAM_DIRECTORY_NAMES = ['bin', 'games', 'sbin', 'shims']

/** Where pen's own `setsid` stands when the policy lists the tools: it only starts another program. */
export const SETSID_PLACE = '/run/pen/setsid'

/** Every name under which a shell goes; `tools.shell: false` takes them away. */
export const SHELLS = [
  'ash',
  'bash',
  'busybox',
  'csh',
  'dash',
  'elvish',
  'es',
  'fish',
  'hush',
  'ksh',
  'lksh',
  'mksh',
  'nu',
  'oksh',
  'posh',
  'pwsh',
  'rbash',
  'rksh',
  'rzsh',
  'sash',
  'sh',
  'tcsh',
  'xonsh',
  'yash',
  'zsh',
]

let shellName: RegExp | undefined

/** Whether a file of this name is a shell, whatever version or build it is. */
export function isShellName(name: string): boolean {
  shellName ??= new RegExp(`^(static-)?(${SHELLS.join('|')})([-.]?\\d[\\d.]*)?(-static)?$`)
  return shellName.test(name)
}
