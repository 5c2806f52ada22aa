/**
 * pen in its hidden mode, started by pen inside a sandbox's network namespace and gone before the sandbox starts:
 * it makes every address local, opens the door's listeners there, hands them out and ends. Nothing hostile runs
 * in the namespace yet. It has no event loop, so that it costs little more than its own start.
 */
import { ptr } from 'bun:ffi'
import { readFileSync, writeFileSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { sendDescriptors } from './door-descriptors.ts'
import { AF, libc, openPath, SOCK, SOL, socketOption, succeeded } from './door-libc.ts'
import { makeEveryAddressLocal, raiseLoopback } from './door-loopback.ts'
import { CATCH_ALL_PORT, DNS_PORT, IPV6_SETTINGS, PROXY_PORT, SETTINGS, type Setting } from './door-rules.ts'

/** The word after `pen`. By itself it opens nothing: the descriptor below must be there too. */
export const DOOR_MODE = '__door'
/** Where pen, and nobody else, leaves the socket over which the listeners go back. */
export const CHANNEL = 3
/** Where it hears that the rules are loaded. */
export const RULES_CHANNEL = 5
/** How this mode ends when the kernel refused the rules: the door can be opened without them. */
export const RULES_REFUSED: ExitCode = 4

/** What each descriptor that is handed out is for, in their order. */
export type Role = 'network' | 'user' | 'dialled' | 'proxy' | 'dns-stream' | 'dns-datagram4' | 'dns-datagram6'

type Family = typeof AF.inet | typeof AF.inet6

/** The kernel keeps this many connections that the gateway has not accepted yet; more wait at the client. */
const BACKLOG = 4096
const SO_TYPE = 3
const SO_DOMAIN = 39
const IPV6_V6ONLY = 26

/** `mapped`: the rules are being loaded. `ports 80,443`: there are none. */
export function openInside([how, what = '']: readonly string[]): ExitCode {
  if (!isChannel(CHANNEL))
    throw new PenError('USAGE', { what: `${DOOR_MODE} is not a verb: pen starts it by itself` })
  raiseLoopback()
  makeEveryAddressLocal(AF.inet)
  const ports = how === 'mapped' ? [CATCH_ALL_PORT] : what.split(',').map(Number)
  const opened = [...namespaces(), ...listeners(AF.inet, ports), ...ipv6Listeners(ports)]
  if (how === 'mapped' && !areRulesLoaded()) return RULES_REFUSED
  apply(SETTINGS)
  sendDescriptors(CHANNEL, {
    text: JSON.stringify(opened.map(([role]) => role)),
    descriptors: opened.map(([, fd]) => fd),
  })
  return EXIT.ok
}

function isChannel(fd: number): boolean {
  try {
    return (
      socketOption(fd, SOL.socket, SO_DOMAIN) === AF.unix &&
      socketOption(fd, SOL.socket, SO_TYPE) === SOCK.seqpacket
    )
  } catch {
    return false
  }
}

/** Whoever holds these can start programs in the namespace after this process has gone. */
function namespaces(): [Role, number][] {
  return [
    ['network', openPath('/proc/self/ns/net')],
    ['user', openPath('/proc/self/ns/user')],
  ]
}

function listeners(family: Family, ports: readonly number[]): [Role, number][] {
  const dialled = ports.map((port): [Role, number] => ['dialled', listen(family, 'every', port)])
  const dns: [Role, number][] = [
    ['dns-stream', listen(family, 'loopback', DNS_PORT)],
    [family === AF.inet ? 'dns-datagram4' : 'dns-datagram6', datagram(family, DNS_PORT)],
  ]
  return [...dialled, ...dns, ...(family === AF.inet ? [proxy()] : [])]
}

const proxy = (): [Role, number] => ['proxy', listen(AF.inet, 'loopback', PROXY_PORT)]

/** A kernel without IPv6 has no IPv6 way out either, so its absence is no failure. */
function ipv6Listeners(ports: readonly number[]): [Role, number][] {
  try {
    apply(IPV6_SETTINGS)
    makeEveryAddressLocal(AF.inet6)
    return listeners(AF.inet6, ports)
  } catch {
    return []
  }
}

function listen(family: Family, where: 'every' | 'loopback', port: number): number {
  const fd = bound(family, SOCK.stream, where, port)
  succeeded(`listen on ${port}`, libc().listen(fd, BACKLOG))
  return fd
}

const datagram = (family: Family, port: number): number => bound(family, SOCK.dgram, 'loopback', port)

function bound(family: Family, type: number, where: 'every' | 'loopback', port: number): number {
  const fd = succeeded('socket', libc().socket(family, type | SOCK.cloexec, 0))
  if (family === AF.inet6)
    succeeded('IPV6_V6ONLY', libc().setsockopt(fd, SOL.ipv6, IPV6_V6ONLY, ptr(new Int32Array([1])), 4))
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  if (where === 'loopback') name.set(family === AF.inet ? [127, 0, 0, 1] : [1], family === AF.inet ? 4 : 23)
  succeeded(`bind port ${port}`, libc().bind(fd, ptr(name), name.length))
  return fd
}

/** Waits for the shell that loads the rules beside us: it says a word when that went well, and hangs up. */
function areRulesLoaded(): boolean {
  const word = new Uint8Array(8)
  return succeeded('wait for the rules', libc().recv(RULES_CHANNEL, ptr(word), word.length, 0)) > 0
}

/** Comfort, not safety: a kernel that lacks one of these serves fewer connections a minute. */
function apply(settings: readonly Setting[]): void {
  for (const { file, value } of settings) {
    try {
      // Writing what is there already still makes the kernel visit every interface.
      if (readFileSync(file, 'utf8').trim() !== value) writeFileSync(file, value)
    } catch {}
  }
}
