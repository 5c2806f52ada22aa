/**
 * `pen __ssh ID [NAME]`: the SSH server of one connection, which the user's ssh starts as its ProxyCommand. It runs outside, as
 * the user, and listens nowhere: its client is the program at the other end of stdin and stdout. A command of the client is a
 * command of `pen exec`. So no key and no SSH server is inside, and the sandbox sends no byte of the SSH protocol.
 */
import ssh2, { type Connection, type ParsedKey } from 'ssh2'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { Project } from '../config/project.ts'
import { sshPaths } from '../ssh/ssh-host.ts'
import { type Attended, attendSandbox, findSandbox } from './sandbox.ts'
import { serveSession } from './session.ts'
import { StandardStreams } from './standard-streams.ts'
import { Tunnels } from './tunnels.ts'

/** How long sessions have to report the end of the sandbox. */
const LAST_WORDS_MS = 1000

export async function serveSsh(words: readonly string[]): Promise<ExitCode> {
  const say = (line: string): void => void process.stderr.write(`pen: ${printable(line, 1024)}\n`)
  const project = findSandbox(words)
  const sandbox = await attendSandbox(project, say)
  const streams = new StandardStreams()
  const server = new ssh2.Server({ hostKeys: [keyOf(sshPaths(project.stateDir).hostKey)] }, client => {
    const sessions = new Set<Promise<void>>()
    void sandbox.ended.then(async () => {
      await Promise.race([Promise.all(sessions), Bun.sleep(LAST_WORDS_MS)])
      client.end()
      // A client that does not read, such as a stopped one, is not waited for.
      setTimeout(() => streams.destroy(), LAST_WORDS_MS)
    })
    serveClient(client, project, sandbox, session => {
      sessions.add(session)
      void session.finally(() => sessions.delete(session))
    })
  })
  // ssh2 uses a duplex stream; nothing here is a socket.
  server.injectSocket(streams as never)
  await streams.ended
  return EXIT.ok
}

function serveClient(
  client: Connection,
  project: Project,
  sandbox: Attended,
  began: (session: Promise<void>) => void,
): void {
  const user = parsed(sshPaths(project.stateDir).userKey)
  const tunnels = new Tunnels(project.stateDir)
  client.on('authentication', attempt => {
    if (attempt.method !== 'publickey' || !attempt.key.data.equals(user.getPublicSSH()))
      attempt.reject(['publickey'])
    // Without a signature the client asks whether this key would do.
    else if (attempt.signature === undefined || attempt.blob === undefined) attempt.accept()
    else if (user.verify(attempt.blob, attempt.signature, attempt.hashAlgo) === true) attempt.accept()
    else attempt.reject()
  })
  client.on('ready', () => {
    client.on('session', accept => serveSession(accept(), { project, sandbox, began }))
    client.on('tcpip', (accept, reject, { destIP, destPort }) =>
      tunnels.open(destIP, destPort, accept, reject),
    )
  })
  // The client is gone. Its sessions end by themselves.
  client.on('error', () => client.end())
  client.on('close', () => tunnels.close())
}

function keyOf(file: string): Buffer {
  const key = readRegularFile(file, { maxBytes: 16_384, owner: 'self-or-root' })
  if (key === undefined)
    throw new PenError('STATE', {
      what: 'the SSH key of this sandbox is missing',
      at: file,
      hint: 'pen ssh-config',
    })
  return key
}

function parsed(file: string): ParsedKey {
  const key = ssh2.utils.parseKey(keyOf(file))
  if (key instanceof Error)
    throw new PenError('STATE', { what: key.message, at: file, hint: 'pen rm; pen ssh-config' })
  return key
}
