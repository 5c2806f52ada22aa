/**
 * `pen __sftp`: an SFTP server on stdin and stdout, inside a sandbox. It has only the sandbox's own view and rights, so the
 * mounts decide. It needs no program of the image. The client is the user's; its programs treat the answers as hostile.
 */
import { readSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { writeAll } from '../base/write-all.ts'
import { protocolError } from '../protocol/frame.ts'
import { SFTP_MODE } from '../protocol/guest-paths.ts'
import { MAX_DATA, MAX_PACKET, number, PacketReader, packet, text } from '../protocol/ssh-packets.ts'
import { Refused, SftpFiles, STATUS } from './sftp-files.ts'

const INIT = 1
const VERSION = 2
const EXTENDED = 200
const EXTENDED_REPLY = 201
const REPLY = { status: 101, handle: 102, data: 103, name: 104, attributes: 105 } as const

/** With the version of each. scp and sftp of OpenSSH use them where the server has them. */
const EXTENSIONS = [
  ['posix-rename@openssh.com', '1'],
  ['hardlink@openssh.com', '1'],
  ['fsync@openssh.com', '1'],
  ['lsetstat@openssh.com', '1'],
  ['limits@openssh.com', '1'],
  ['expand-path@openssh.com', '1'],
] as const

type Field = Buffer

export async function runSftpServer(words: readonly string[]): Promise<ExitCode> {
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || words.length > 0)
    throw new PenError('USAGE', { what: `${SFTP_MODE} is not a verb: pen starts it by itself` })
  const files = new SftpFiles()
  for (let request = readPacket(); request !== undefined; request = readPacket())
    writeAll(1, answer(new PacketReader(request), files))
  return EXIT.ok
}

export function answer(request: PacketReader, files: SftpFiles): Buffer {
  const kind = request.byte()
  if (kind === INIT)
    return packet(VERSION, number(3), ...EXTENSIONS.flatMap(([name, version]) => [text(name), text(version)]))
  const id = number(request.number())
  try {
    const [reply, ...fields] = perform(kind, request, files)
    return packet(reply, id, ...fields)
  } catch (error) {
    return packet(REPLY.status, id, ...failure(error))
  }
}

type Answer = readonly [number, ...Field[]]

const DONE: Answer = [REPLY.status, number(STATUS.ok), text(''), text('')]

/** Requests by their number in the protocol. */
const REQUESTS: Readonly<Record<number, (request: PacketReader, files: SftpFiles) => Answer>> = {
  3: (request, files) => [
    REPLY.handle,
    text(files.open(request.bytes(), request.number(), request.attributes())),
  ],
  4: (request, files) => done(files.close(request.text())),
  5: (request, files) => [
    REPLY.data,
    text(files.read(request.text(), request.long(), Math.min(request.number(), MAX_DATA))),
  ],
  6: (request, files) => done(files.write(request.text(), request.long(), request.bytes())),
  7: (request, files) => [REPLY.attributes, files.lstat(request.bytes())],
  8: (request, files) => [REPLY.attributes, files.fstat(request.text())],
  9: (request, files) => done(files.change(request.bytes(), request.attributes())),
  10: (request, files) => done(files.changeOpen(request.text(), request.attributes())),
  11: (request, files) => [REPLY.handle, text(files.openDirectory(request.bytes()))],
  12: (request, files) => [REPLY.name, ...files.list(request.text())],
  13: (request, files) => done(files.unlink(request.bytes())),
  14: (request, files) => done(files.makeDirectory(request.bytes(), request.attributes())),
  15: (request, files) => done(files.removeDirectory(request.bytes())),
  16: (request, files) => [REPLY.name, ...files.realPath(request.bytes())],
  17: (request, files) => [REPLY.attributes, files.stat(request.bytes())],
  18: (request, files) => done(files.move(request.bytes(), request.bytes())),
  19: (request, files) => [REPLY.name, ...files.readLink(request.bytes())],
  // OpenSSH sends the target first, other than the draft says.
  20: (request, files) => done(files.link('symbolic', request.bytes(), request.bytes())),
  [EXTENDED]: (request, files) => extended(request.text(), request, files),
}

function extended(name: string, request: PacketReader, files: SftpFiles): Answer {
  switch (name) {
    case 'posix-rename@openssh.com':
      return done(files.replace(request.bytes(), request.bytes()))
    case 'hardlink@openssh.com':
      return done(files.link('hard', request.bytes(), request.bytes()))
    case 'fsync@openssh.com':
      return done(files.flush(request.text()))
    case 'lsetstat@openssh.com':
      return done(files.changeLink(request.bytes(), request.attributes()))
    case 'limits@openssh.com':
      return [EXTENDED_REPLY, ...files.limits()]
    case 'expand-path@openssh.com':
      return [REPLY.name, ...files.expand(request.bytes())]
    default:
      throw new Refused(STATUS.unsupported)
  }
}

const done = (_nothing: unknown): Answer => DONE

function perform(kind: number, request: PacketReader, files: SftpFiles): Answer {
  const act = REQUESTS[kind]
  if (act === undefined) throw new Refused(STATUS.unsupported)
  return act(request, files)
}

const BY_ERRNO: Readonly<Record<string, number>> = {
  ENOENT: STATUS.absent,
  ENOTDIR: STATUS.absent,
  EBADF: STATUS.absent,
  ELOOP: STATUS.absent,
  EACCES: STATUS.denied,
  EPERM: STATUS.denied,
  EROFS: STATUS.denied,
}

function failure(error: unknown): Field[] {
  if (error instanceof Refused) return [number(error.status), text(error.message), text('')]
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  return [number(BY_ERRNO[errno] ?? STATUS.failed), text(errno), text('')]
}

/** Undefined at the end of the session. */
function readPacket(): Buffer | undefined {
  const header = readExactly(4)
  if (header === undefined) return undefined
  const length = header.readUInt32BE()
  if (length === 0 || length > MAX_PACKET) throw protocolError(`a packet of ${length} bytes`)
  return readExactly(length)
}

function readExactly(length: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; ) {
    const n = readSync(0, bytes, at, length - at, null)
    if (n === 0) return undefined
    at += n
  }
  return bytes
}
