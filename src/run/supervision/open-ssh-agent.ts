/** Opens the filtered SSH agent of a sandbox whose policy grants keys. */
import { chmodSync, closeSync, constants, openSync, statSync, writeFileSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { basename } from '../../base/posix-path.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { AGENT_HOSTS, AGENT_SOCKET } from '../../policy/profile.ts'
import { knownKeys, nameOf } from '../../ssh-agent/known-hosts.ts'
import { serveAgent } from '../../ssh-agent/serve-agent.ts'
import type { Supervised } from './supervisor.ts'

const MAX_BYTES = 4 * 2 ** 20

/** Undefined without granted keys, and where the user accepted to run without them. */
export function openSshAgent(
  { prepared, running, refusals }: Supervised,
  fail: (error: unknown) => void,
): { close(): void } | undefined {
  const { policy, project } = prepared.loaded
  const { keys, hosts, sign } = policy.sshAgent
  if (keys.length === 0 || running.inside === undefined) return undefined
  if (prepared.plan.gaps.some(({ name }) => name === 'no-ssh-agent')) return undefined
  const agent = process.env['SSH_AUTH_SOCK'] ?? ''
  if (statSync(agent, { throwIfNoEntry: false })?.isSocket() !== true)
    throw new PenError('CONFIG_VALUE', {
      what: `the policy grants keys of your SSH agent, and ${agent === '' ? 'SSH_AUTH_SOCK is not set' : `no agent is at ${agent} (SSH_AUTH_SOCK)`}`,
      at: 'ssh.agent.keys',
      hint: 'start an agent: eval "$(ssh-agent)"; ssh-add',
    })
  const files = [`${project.world.home}/.ssh/known_hosts`, '/etc/ssh/ssh_known_hosts']
  const texts = files.map(file => readRegularFile(file, { maxBytes: MAX_BYTES })?.toString('latin1') ?? '')
  const known = knownKeys(hosts, texts)
  const strange = hosts.find(host => !known.some(one => one.host === host))
  if (strange !== undefined)
    throw new PenError('CONFIG_VALUE', {
      what: `the key of the server ${strange} is not known`,
      at: 'ssh.agent.hosts',
      hint: `connect to it once outside of pen, and check its key: ssh -p ${strange.slice(strange.lastIndexOf(':') + 1)} ${strange.slice(0, strange.lastIndexOf(':'))}`,
    })
  // Through a descriptor: a socket path holds about a hundred bytes, and a home may be longer.
  const dir = openSync(running.inside, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const at = (path: string): string => `/proc/self/fd/${dir}/${basename(path)}`
    const lines = known.map(({ host, type, key }) => `${nameOf(host)} ${type} ${key}\n`)
    writeFileSync(at(AGENT_HOSTS), lines.join(''))
    // The sandbox may run as another user.
    chmodSync(at(AGENT_HOSTS), 0o644)
    const hostKeys = new Map(known.map(({ host, key }) => [key, host]))
    return serveAgent({
      path: at(AGENT_SOCKET),
      agent,
      grant: { keys, hostKeys, sign },
      audit: refusals,
      fail,
    })
  } finally {
    closeSync(dir)
  }
}
