/**
 * What a client needs to reach a sandbox by SSH: a host name, a key, and the host key that the server must show. They are
 * in the sandbox's state directory, which no sandbox can see, and go with it.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { ownProgram } from '../base/own-program.ts'
import { printable, shellWord } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { withLock } from '../config/lock.ts'
import { namesOf, type Project, rememberWorkspace } from '../config/project.ts'

/** The word after `pen` for the SSH server of one connection. */
export const SSH_MODE = '__ssh'

export const sshPaths = (stateDir: string) => {
  const directory = `${stateDir}/ssh`
  return {
    directory,
    /** The sandbox's `Host` block. */
    config: `${directory}/config`,
    userKey: `${directory}/id_ed25519`,
    hostKey: `${directory}/host_key`,
    /** Written last: with it the keys are complete. */
    knownHosts: `${directory}/known_hosts`,
  }
}

/** The file with the blocks of all sandboxes, for an `Include`. `state` is `~/.pen`. */
export const hostsFile = (state: string): string => `${state}/ssh/config`

interface SshHost {
  /** What follows `ssh`. */
  readonly host: string
  /** A config with this host alone. */
  readonly config: string
  readonly block: string
}

const MAX_BYTES = 64 * 1024

/** Makes what is missing, and writes the file with all hosts. */
export async function makeSshHost(project: Project): Promise<SshHost> {
  const { stateDir, world } = project
  rememberWorkspace(project)
  const { directory, config, knownHosts } = sshPaths(stateDir)
  const keys = existsSync(knownHosts) ? undefined : await newKeys()
  return await whileLocked(world.state, () => {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    if (keys !== undefined && !existsSync(knownHosts)) writeKeys(project, keys)
    const host = hostIn(config) ?? freeHost(project)
    const block = blockOf(project, host)
    if (textOf(config) !== block) writeFileAtomically(config, block)
    writeHosts(world.state)
    return { host, config, block }
  })
}

/** After the removal of a sandbox. Does nothing where no sandbox was reached by SSH. */
export async function updateHosts(state: string): Promise<void> {
  if (existsSync(hostsFile(state))) await whileLocked(state, () => writeHosts(state))
}

export async function whileLocked<T>(state: string, work: () => T): Promise<T> {
  mkdirSync(`${state}/ssh`, { recursive: true, mode: 0o700 })
  return await withLock(hostsFile(state), work)
}

function writeHosts(state: string): void {
  const all = configsIn(state).map(textOf).join('\n')
  const text = `# Written by pen ssh-config. pen rm removes the hosts of a sandbox.\n\n${all}`
  if (textOf(hostsFile(state)) !== text) writeFileAtomically(hostsFile(state), text)
}

function configsIn(state: string): string[] {
  const all = `${state}/sandboxes`
  const shared = existsSync(all) ? readdirSync(all).sort() : []
  return shared
    .map(id => `${all}/${id}`)
    .flatMap(dir => [dir, ...namesOf(dir).map(name => `${dir}/names/${name}`)])
    .map(dir => sshPaths(dir).config)
    .filter(file => existsSync(file))
}

const textOf = (file: string): string => readRegularFile(file, { maxBytes: MAX_BYTES })?.toString() ?? ''

const hostIn = (config: string): string | undefined => /^Host (\S+)\n/.exec(textOf(config))?.[1]

/** Short, unless another sandbox has that name: ssh would take the first of the two. */
function freeHost({ id, world }: Project): string {
  const short = `pen-${id.slice(0, -17)}`
  return configsIn(world.state).some(file => hostIn(file) === short) ? `pen-${id}` : short
}

interface NewKeys {
  readonly user: KeyPair
  readonly host: KeyPair
}
interface KeyPair {
  readonly private: string
  readonly public: string
}

async function newKeys(): Promise<NewKeys> {
  const { generateKeyPairSync, parseKey } = (await import('ssh2')).default.utils
  // ssh2 1.17 drops leading zeros of a public key, so one pair in 256 is unusable.
  const newPair = (): KeyPair => {
    const pair = generateKeyPairSync('ed25519')
    return parseKey(pair.private) instanceof Error ? newPair() : pair
  }
  return { user: newPair(), host: newPair() }
}

function writeKeys({ id, stateDir }: Project, { user, host }: NewKeys): void {
  const { userKey, hostKey, knownHosts } = sshPaths(stateDir)
  writeFileAtomically(userKey, user.private)
  writeFileAtomically(hostKey, host.private)
  writeFileAtomically(knownHosts, `${id} ${host.public}\n`)
}

/** The user's other settings for all hosts come later in the file, so they change none of these. */
function blockOf({ id, stateDir, shared, name, world }: Project, host: string): string {
  const { userKey, knownHosts } = sshPaths(stateDir)
  const words = [...ownProgram(), SSH_MODE, shared.id, ...(name === undefined ? [] : [name])]
  return [
    `Host ${host}`,
    `  # ${printable(world.workspace, 4096)}`,
    `  ProxyCommand ${words.map(commandWord).join(' ')}`,
    '  ProxyUseFdpass no',
    `  HostKeyAlias ${id}`,
    `  UserKnownHostsFile ${quoted(knownHosts)}`,
    '  GlobalKnownHostsFile /dev/null',
    '  StrictHostKeyChecking yes',
    '  UpdateHostKeys no',
    '  HostKeyAlgorithms ssh-ed25519',
    `  IdentityFile ${quoted(userKey)}`,
    '  IdentitiesOnly yes',
    '  IdentityAgent none',
    '  PreferredAuthentications publickey',
    '  ForwardAgent no',
    '  ForwardX11 no',
    '',
  ].join('\n')
}

/** In quotes, OpenSSH still reads `%` and `$`. */
export function quoted(path: string): string {
  if (/["\\$\p{Cc}]/u.test(path)) throw unfit(path)
  return `"${path.replaceAll('%', '%%')}"`
}

/** The user's shell starts the command. */
function commandWord(text: string): string {
  const word = shellWord(text)
  if (word === undefined) throw unfit(text)
  return word.replaceAll('%', '%%')
}

const unfit = (at: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: 'this path cannot be written into an SSH config',
    at,
    hint: 'rename the directory, without quotes, backslashes, dollar signs and control characters',
  })
