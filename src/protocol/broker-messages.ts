/**
 * The messages of the file broker. Requests come from a sandbox and are hostile: each is checked completely before it
 * is served. Replies come from the host. The client checks them as strictly, because it cannot know who answers.
 */
import {
  among,
  filled,
  keys,
  list,
  object,
  pack,
  record,
  text,
  toBytes,
  truth,
  unpack,
  type Values,
  whole,
} from './broker-fields.ts'
import { encodeFrame, type Frame, FrameDecoder, protocolError } from './frame.ts'

/** What a client requests. Paths are the host's, absolute. */
export type FileRequest = { readonly op: 'grants' } | PathRequest

export type PathRequest =
  | { readonly op: 'stat'; readonly path: string }
  /** `from` is an index into the sorted names. */
  | { readonly op: 'list'; readonly path: string; readonly from: number }
  /** `length` null: to the end. */
  | { readonly op: 'read'; readonly path: string; readonly from: number; readonly length: number | null }
  | { readonly op: 'write'; readonly path: string; readonly executable: boolean }

/** A channel is one request. The client numbers channels, and never reuses one. */
export type RequestMessage =
  | { readonly kind: 'request'; readonly channel: number; readonly request: FileRequest }
  | { readonly kind: 'data'; readonly channel: number; readonly bytes: Uint8Array }
  /** All data was sent. Only now does the new content replace the old. */
  | { readonly kind: 'complete'; readonly channel: number }
  | { readonly kind: 'window'; readonly channel: number; readonly bytes: number }
  | { readonly kind: 'cancel'; readonly channel: number }

export interface FileFacts {
  readonly kind: 'file' | 'directory'
  readonly size: number
  readonly modified: number
  readonly executable: boolean
  readonly writable: boolean
}

export interface DirectoryPage {
  readonly entries: readonly { readonly name: string; readonly kind: EntryKind }[]
  /** Where to continue. Null at the end. */
  readonly next: number | null
  /** True when there are more names than the broker lists. */
  readonly truncated: boolean
}

export type EntryKind = 'file' | 'directory' | 'link' | 'other'

export interface GrantedPlace {
  readonly path: string
  readonly kind: 'file' | 'directory'
  readonly write: boolean
  readonly until: number | null
}

export interface FileRefusal {
  /** A stable identifier. */
  readonly reason: string
  readonly why: string
  /** The command that the user can run on the host. */
  readonly fix: string | null
}

export type Reply =
  | { readonly kind: 'granted'; readonly channel: number; readonly places: readonly GrantedPlace[] }
  | { readonly kind: 'facts'; readonly channel: number; readonly facts: FileFacts }
  | { readonly kind: 'page'; readonly channel: number; readonly page: DirectoryPage }
  | { readonly kind: 'data'; readonly channel: number; readonly bytes: Uint8Array }
  | { readonly kind: 'window'; readonly channel: number; readonly bytes: number }
  /** The request succeeded and is over. */
  | { readonly kind: 'done'; readonly channel: number; readonly bytes: number }
  /** The request failed, or stopped early, and is over. */
  | { readonly kind: 'refused'; readonly channel: number; readonly refusal: FileRefusal }

const KIND = {
  request: 1,
  data: 2,
  complete: 3,
  window: 4,
  cancel: 5,
  granted: 16,
  facts: 17,
  page: 18,
  done: 19,
  refused: 20,
} as const

const LONG_REPLIES = new Set<number>([KIND.granted, KIND.page])
/** The kernel's limit, in bytes of UTF-8. As JSON it is at most six times as long. */
export const MAX_PATH = 4096
const MAX_NAME = 255

export function encodeRequest(ask: RequestMessage): Uint8Array {
  const kind = KIND[ask.kind]
  switch (ask.kind) {
    case 'request':
      return encodeFrame(kind, ask.channel, toBytes(ask.request))
    case 'data':
      return encodeFrame(kind, ask.channel, ask.bytes)
    case 'window':
      return encodeFrame(kind, ask.channel, pack(ask.bytes))
    case 'complete':
    case 'cancel':
      return encodeFrame(kind, ask.channel)
  }
}

export function encodeReply(reply: Reply): Uint8Array {
  const kind = KIND[reply.kind]
  switch (reply.kind) {
    case 'granted':
      return encodeFrame(kind, reply.channel, toBytes({ places: reply.places }))
    case 'facts':
      return encodeFrame(kind, reply.channel, toBytes(reply.facts))
    case 'page':
      return encodeFrame(kind, reply.channel, toBytes(reply.page))
    case 'data':
      return encodeFrame(kind, reply.channel, reply.bytes)
    case 'window':
    case 'done':
      return encodeFrame(kind, reply.channel, pack(reply.bytes))
    case 'refused':
      return encodeFrame(kind, reply.channel, toBytes(reply.refusal))
  }
}

/** Reads what the broker receives. */
export class RequestReader {
  readonly #frames = new FrameDecoder()

  push(bytes: Uint8Array): Iterable<RequestMessage> {
    return each(this.#frames.push(bytes), readAsk)
  }
}

/** Reads what a client receives. */
export class ReplyReader {
  readonly #frames = new FrameDecoder(LONG_REPLIES)

  push(bytes: Uint8Array): Iterable<Reply> {
    return each(this.#frames.push(bytes), readReply)
  }
}

function* each<T>(frames: Iterable<Frame>, read: (frame: Frame) => T): Iterable<T> {
  for (const frame of frames) yield read(frame)
}

function readAsk({ kind, channel, payload }: Frame): RequestMessage {
  if (channel === 0) throw protocolError('a request without its channel')
  switch (kind) {
    case KIND.request:
      return { kind: 'request', channel, request: readRequest(payload) }
    case KIND.data:
      return { kind: 'data', channel, bytes: filled(payload) }
    case KIND.complete:
    case KIND.cancel:
      if (payload.length !== 0) throw protocolError('an unexpected payload')
      return { kind: kind === KIND.complete ? 'complete' : 'cancel', channel }
    case KIND.window:
      return { kind: 'window', channel, bytes: unpack(payload) }
    default:
      throw protocolError(`a request of kind ${kind}`)
  }
}

function readRequest(payload: Uint8Array): FileRequest {
  const value = object(payload)
  const { op } = value
  switch (op) {
    case 'grants':
      keys(value, ['op'])
      return { op }
    case 'stat':
      keys(value, ['op', 'path'])
      return { op, path: text(value['path'], MAX_PATH * 2) }
    case 'list':
      keys(value, ['op', 'path', 'from'])
      return { op, path: text(value['path'], MAX_PATH * 2), from: whole(value['from']) }
    case 'read': {
      keys(value, ['op', 'path', 'from', 'length'])
      const length = value['length'] === null ? null : whole(value['length'])
      return { op, path: text(value['path'], MAX_PATH * 2), from: whole(value['from']), length }
    }
    case 'write':
      keys(value, ['op', 'path', 'executable'])
      return { op, path: text(value['path'], MAX_PATH * 2), executable: truth(value['executable']) }
    default:
      throw protocolError('an unknown request')
  }
}

function readReply({ kind, channel, payload }: Frame): Reply {
  if (channel === 0) throw protocolError('a reply without its channel')
  switch (kind) {
    case KIND.granted: {
      const value = keys(object(payload), ['places'])
      return { kind: 'granted', channel, places: list(value['places']).map(readPlace) }
    }
    case KIND.facts:
      return { kind: 'facts', channel, facts: readFacts(object(payload)) }
    case KIND.page:
      return { kind: 'page', channel, page: readPage(object(payload)) }
    case KIND.data:
      return { kind: 'data', channel, bytes: filled(payload) }
    case KIND.window:
      return { kind: 'window', channel, bytes: unpack(payload) }
    case KIND.done:
      return { kind: 'done', channel, bytes: unpack(payload) }
    case KIND.refused: {
      const value = keys(object(payload), ['reason', 'why', 'fix'])
      const fix = value['fix'] === null ? null : text(value['fix'], MAX_PATH)
      const refusal = { reason: text(value['reason'], 64), why: text(value['why'], MAX_PATH * 2), fix }
      return { kind: 'refused', channel, refusal }
    }
    default:
      throw protocolError(`a reply of kind ${kind}`)
  }
}

function readPlace(value: unknown): GrantedPlace {
  const place = keys(record(value), ['path', 'kind', 'write', 'until'])
  return {
    path: text(place['path'], MAX_PATH),
    kind: among(place['kind'], ['file', 'directory']),
    write: truth(place['write']),
    until: place['until'] === null ? null : whole(place['until']),
  }
}

function readFacts(value: Values): FileFacts {
  const facts = keys(value, ['kind', 'size', 'modified', 'executable', 'writable'])
  return {
    kind: among(facts['kind'], ['file', 'directory']),
    size: whole(facts['size']),
    modified: whole(facts['modified']),
    executable: truth(facts['executable']),
    writable: truth(facts['writable']),
  }
}

function readPage(value: Values): DirectoryPage {
  const page = keys(value, ['entries', 'next', 'truncated'])
  return {
    entries: list(page['entries']).map(one => {
      const entry = keys(record(one), ['name', 'kind'])
      return {
        name: text(entry['name'], MAX_NAME),
        kind: among(entry['kind'], ['file', 'directory', 'link', 'other']),
      }
    }),
    next: page['next'] === null ? null : whole(page['next']),
    truncated: truth(page['truncated']),
  }
}
