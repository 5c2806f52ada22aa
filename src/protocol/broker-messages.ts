/**
 * The messages of the file broker. Requests come from a sandbox and are hostile: each is checked completely before it
 * is served. Replies come from the host. The client checks them as strictly, because it cannot know who answers.
 */
import {
  type Checked,
  fromText,
  list,
  object,
  oneOf,
  operation,
  orNull,
  text,
  toText,
  truth,
  whole,
} from './fields.ts'
import { count, data, encoderOf, field, json, type MessageOf, nothing, TableReader } from './messages.ts'

/** The kernel's limit, in bytes of UTF-8. As JSON it is at most six times as long. */
export const MAX_PATH = 4096
const MAX_NAME = 255

const path = text(MAX_PATH * 2)

/** What a client requests. Paths are the host's, absolute. */
const request = operation({
  grants: {},
  stat: { path },
  /** `from` is an index into the sorted names. */
  list: { path, from: whole },
  /** `length` null: to the end. */
  read: { path, from: whole, length: orNull(whole) },
  write: { path, executable: truth },
})
export type FileRequest = Checked<typeof request>
export type PathRequest = Exclude<FileRequest, { readonly op: 'grants' }>

const facts = object({
  kind: oneOf('file', 'directory'),
  size: whole,
  modified: whole,
  executable: truth,
  writable: truth,
})
export type FileFacts = Checked<typeof facts>

const entryKind = oneOf('file', 'directory', 'link', 'other')
export type EntryKind = Checked<typeof entryKind>

const page = object({
  entries: list(object({ name: text(MAX_NAME), kind: entryKind })),
  /** Where to continue. Null at the end. */
  next: orNull(whole),
  /** True when there are more names than the broker lists. */
  truncated: truth,
})
export type DirectoryPage = Checked<typeof page>

const place = object({
  path: text(MAX_PATH),
  kind: oneOf('file', 'directory'),
  write: truth,
  until: orNull(whole),
})
export type GrantedPlace = Checked<typeof place>

const refusal = object({
  /** A stable identifier. */
  reason: text(64),
  why: text(MAX_PATH * 2),
  /** The command that the user can run on the host. */
  fix: orNull(text(MAX_PATH)),
})
export type FileRefusal = Checked<typeof refusal>

const REQUESTS = {
  request: { number: 1, ...json('request', request) },
  data: { number: 2, ...data },
  /** All data was sent. Only now does the new content replace the old. */
  complete: { number: 3, ...nothing },
  window: { number: 4, ...count(8) },
  cancel: { number: 5, ...nothing },
} as const
export type RequestMessage = MessageOf<typeof REQUESTS>

const granted = object({ places: list(place) })

const REPLIES = {
  granted: {
    number: 16,
    isLong: true,
    ...field(
      'places',
      payload => fromText(payload, granted).places,
      places => toText({ places }),
    ),
  },
  facts: { number: 17, ...json('facts', facts) },
  page: { number: 18, isLong: true, ...json('page', page) },
  data: { number: 2, ...data },
  window: { number: 4, ...count(8) },
  /** The request succeeded and is over. */
  done: { number: 19, ...count(8) },
  /** The request failed, or stopped early, and is over. */
  refused: { number: 20, ...json('refusal', refusal) },
} as const
export type Reply = MessageOf<typeof REPLIES>

export const encodeRequest = encoderOf(REQUESTS)
export const encodeReply = encoderOf(REPLIES)

/** Reads what the broker receives. */
export class RequestReader extends TableReader<typeof REQUESTS> {
  constructor() {
    super(REQUESTS)
  }
}

/** Reads what a client receives. */
export class ReplyReader extends TableReader<typeof REPLIES> {
  constructor() {
    super(REPLIES)
  }
}
