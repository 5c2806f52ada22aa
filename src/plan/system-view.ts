/**
 * The part of the host's system that a sandbox sees, read-only: what programs need to run, and nothing about the host's users,
 * secrets or services. Home, `/var`, `/run`, `/srv`, other mounts and most of `/etc` are absent.
 */

/** Programs, libraries and the loader. Each is a directory or, on merged systems, a link into `/usr`. */
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

/** Toolchains, for profiles that build software. */
export const TOOLCHAIN_ROOTS = ['/opt', '/home/linuxbrew/.linuxbrew']

/**
 * Files in `/etc` that programs read. Excluded are private keys, password hashes, the machine id, host names, and service
 * configuration, which may hold secrets.
 */
export const SYSTEM_CONFIG = [
  // The system: loader, locale, number names, release.
  '/etc/alternatives',
  '/etc/debian_version',
  '/etc/gai.conf',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/locale.alias',
  '/etc/localtime',
  '/etc/lsb-release',
  '/etc/magic',
  '/etc/mailcap',
  '/etc/mime.types',
  '/etc/os-release',
  '/etc/papersize',
  '/etc/protocols',
  '/etc/redhat-release',
  '/etc/services',
  '/etc/shells',
  '/etc/timezone',
  // Certificate authorities.
  '/etc/ca-certificates',
  '/etc/ca-certificates.conf',
  '/etc/crypto-policies',
  '/etc/pki/ca-trust',
  '/etc/pki/tls/cert.pem',
  '/etc/pki/tls/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
  // Shells, terminals and editors.
  '/etc/bash.bashrc',
  '/etc/bash_completion.d',
  '/etc/emacs',
  '/etc/inputrc',
  '/etc/nanorc',
  '/etc/skel',
  '/etc/terminfo',
  '/etc/vim',
  // Languages and build tools. Some do not start without these.
  '/etc/R',
  '/etc/ant',
  '/etc/dotnet',
  '/etc/gradle',
  '/etc/groovy',
  '/etc/julia',
  '/etc/maven',
  '/etc/mono',
  '/etc/octave',
  '/etc/perl',
  '/etc/racket',
  // Documents, pictures and browsers.
  '/etc/chromium',
  '/etc/chromium.d',
  '/etc/dictionaries-common',
  '/etc/firefox',
  '/etc/firefox-esr',
  '/etc/fonts',
  '/etc/ghostscript',
  '/etc/gtk-3.0',
  '/etc/libreoffice',
  '/etc/sgml',
  '/etc/texmf',
  '/etc/xml',
  // Graphics without a display.
  '/etc/OpenCL',
  '/etc/glvnd',
  '/etc/vulkan',
]

/** The same for packages with a version in their directory name. For PHP only the CLI: its server pools hold passwords. */
export const SYSTEM_CONFIG_FAMILIES: readonly {
  readonly name: RegExp
  readonly parts?: readonly string[]
}[] = [
  { name: /^ImageMagick-\d+$/ },
  { name: /^java(-\d+(-[a-z]+)?)?$/ },
  { name: /^lua(\d+\.\d+|rocks)?$/ },
  { name: /^python\d+(\.\d+)?$/ },
  { name: /^php$/, parts: ['cli', 'mods-available'] },
]

/** Toolchains below the user's home, for the `dev` profile: programs only, no credentials or caches. */
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
  '.npm-global',
  '.npm-packages',
  '.nvm',
  '.pyenv',
  '.rbenv',
  '.rustup',
  '.sdkman/candidates',
  '.volta',
  'go/bin',
]

/** The system's part of PATH inside. */
export const SYSTEM_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Directories with these names hold programs, anywhere in the system. */
export const PROGRAM_DIRECTORY_NAMES = ['bin', 'games', 'sbin', 'shims']

/** Where pen's own `setsid` is when the policy lists tools. It only starts another program. */
export const SETSID_PATH = '/run/pen/setsid'

/** Every name of a shell. `tools.shell: false` hides them. */
const SHELLS = [
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

/** Whether a file name is that of a shell, with any version or build suffix. */
export function isShellName(name: string): boolean {
  shellName ??= new RegExp(`^(static-)?(${SHELLS.join('|')})([-.]?\\d[\\d.]*)?(-static)?$`)
  return shellName.test(name)
}
