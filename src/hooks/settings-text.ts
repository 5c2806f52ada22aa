/** Puts pen's entry into the text of an agent's settings, and takes it out again. All other bytes stay as they are. */
import { PenError } from '../base/error.ts'
import { withoutComments } from '../config/json/comments.ts'
import { isObject, type JsonValue, printJson } from '../config/json/json.ts'
import { type JsonNode, parseJson } from '../config/json/parser.ts'
import { decodeText, type SourceText } from '../config/json/source-text.ts'

const MAX_BYTES = 1_048_576
/** In every entry that pen makes, and in no other. */
export const MARK = '__hook '

export interface Insertion {
  readonly event: string
  readonly entry: object
  /** Whether the agent reads comments. */
  readonly comments: boolean
}

export interface Inserted {
  readonly text: string
  /** Cutting this out restores the file. */
  readonly inserted: string
  /** How many hooks of others there are for the event. */
  readonly others: number
}

/** Throws with the place when the file is broken, or has something else where hooks belong. */
export function insertEntry(
  bytes: Uint8Array,
  file: string,
  { event, entry, comments }: Insertion,
): Inserted {
  const source = decodeText(bytes, file, MAX_BYTES)
  const root = parseJson(comments ? strict(source) : source)
  const hooks = container(root, 'object', source).parts?.get('hooks')
  const list = hooks && container(hooks, 'object', source).parts?.get(event)
  const [into, addition] =
    list !== undefined
      ? ([container(list, 'list', source), entry] as const)
      : hooks !== undefined
        ? ([hooks, { [event]: [entry] }] as const)
        : ([root, { hooks: { [event]: [entry] } }] as const)
  const level = list !== undefined ? 2 : hooks !== undefined ? 1 : 0
  const indent = '  '.repeat(level)
  const printed = JSON.stringify(addition, null, 2)
  // Only the members of the addition go into an object, and the entry itself into a list.
  const members = list === undefined ? printed.slice(2, -2) : `  ${printed.replaceAll('\n', '\n  ')}`
  const isEmpty = into.parts?.size === 0
  const inserted = `\n${members.replace(/^/gm, indent)}${isEmpty ? `\n${indent}` : ','}`
  const { text } = source
  return {
    text: text.slice(0, into.at + 1) + inserted + text.slice(into.at + 1),
    inserted,
    others: list?.parts?.size ?? 0,
  }
}

const strict = (source: SourceText): SourceText => ({ ...source, text: withoutComments(source.text) })

function container(node: JsonNode, kind: 'object' | 'list', source: SourceText): JsonNode {
  if (node.parts !== undefined && Array.isArray(node.value) === (kind === 'list')) return node
  throw source.refusal(
    node.at,
    `pen expects ${kind === 'list' ? 'a list' : 'an object'} here`,
    'check the file',
  )
}

/**
 * The text without pen's entry. If a program wrote the file again since, it is printed without the entry. Undefined when it
 * has none. Throws when only the user can tell what to remove.
 */
export function removeEntry(text: string, file: string, inserted: string, event: string): string | undefined {
  const at = text.indexOf(inserted)
  if (at >= 0) return text.slice(0, at) + text.slice(at + inserted.length)
  if (!text.includes(MARK)) return undefined
  const source = decodeText(Buffer.from(text), file, MAX_BYTES)
  if (strict(source).text !== text)
    throw source.refusal(
      text.indexOf(MARK),
      'the file was edited since, and has comments',
      'remove this entry yourself',
    )
  const root = parseJson(source).value
  const hooks = isObject(root) ? root['hooks'] : undefined
  const list = isObject(hooks) ? hooks[event] : undefined
  if (!isObject(root) || !isObject(hooks) || !Array.isArray(list))
    throw source.refusal(text.indexOf(MARK), 'the entry is in another place', 'remove it yourself')
  const kept = (list as readonly JsonValue[]).filter(entry => !JSON.stringify(entry).includes(MARK))
  const { [event]: _list, ...events } = hooks
  const others = kept.length === 0 ? events : { ...hooks, [event]: kept }
  const { hooks: _hooks, ...rest } = root
  return printJson(Object.keys(others).length === 0 ? rest : { ...root, hooks: others }, {
    like: Buffer.from(text),
    maxBytes: MAX_BYTES,
  })
}

export function refuseMarked(bytes: Uint8Array, file: string): void {
  if (Buffer.from(bytes).includes(MARK))
    throw new PenError('STATE', {
      what: `${file} already has a hook of pen`,
      at: file,
      hint: 'pen hook --remove, or remove it from the file',
    })
}
