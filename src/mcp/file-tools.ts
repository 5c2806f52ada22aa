import { printable } from '../base/printable.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { encodeBytes, firstItems, MAX_RESULT } from './result-size.ts'
import { number, READS, type Tool, text, WRITES } from './tool.ts'

/** For a model that asks for more than the default. */
const MAX_READ = 64 * 1024
const MAX_WRITE = 4 * 2 ** 20

const path = (of: string) =>
  ({ type: 'string', description: `${of}, relative to the project or absolute` }) as const

const readFile: Tool = {
  name: 'read_file',
  title: 'Read a file',
  description: `Reads a file in the sandbox, ${MAX_RESULT / 1024} KiB at a time. To read a granted file outside the project, give its absolute path.`,
  properties: {
    path: path('the file'),
    offset: { type: 'number', description: 'the first byte to read', minimum: 0, maximum: 2 ** 52 },
    length: {
      type: 'number',
      description: 'the maximum number of bytes to read',
      minimum: 1,
      maximum: MAX_READ,
    },
  },
  required: ['path'],
  output: {
    size: { type: 'integer', description: 'how many bytes of the file are in content' },
    more: { type: 'boolean', description: 'whether the file continues' },
    nextOffset: { type: 'integer', description: 'the offset of the next byte' },
    encoding: {
      type: 'string',
      enum: ['utf-8', 'base64'],
      description: 'base64 if the bytes are not UTF-8 text',
    },
    content: { type: 'string' },
  },
  effect: READS,
  async run(box, args) {
    const from = Math.floor(number(args, 'offset') ?? 0)
    const length = Math.floor(number(args, 'length') ?? MAX_RESULT)
    // One extra byte shows whether the file continues.
    const bytes = await box.files.read(text(args, 'path') ?? '', { from, length: length + 1 })
    const { content, encoding, length: size } = encodeBytes(bytes.subarray(0, length), bytes.length <= length)
    const more = size < bytes.length
    const summary = [
      `${size} bytes`,
      ...(encoding === 'base64' ? ['not text, encoded in base64'] : []),
      ...(more ? [`continues at offset ${from + size}`] : []),
    ]
    const facts = { size, more, ...(more && { nextOffset: from + size }), encoding, content }
    return { texts: [summary.join('; '), content], facts }
  },
}

const writeFile: Tool = {
  name: 'write_file',
  title: 'Write a file',
  description:
    'Writes a whole file and creates missing parent directories. Files that the host may execute later, such as git hooks, cannot be written.',
  properties: {
    path: path('the file'),
    content: { type: 'string', description: 'the whole content of the file' },
    executable: { type: 'boolean', description: 'makes a new file executable' },
  },
  required: ['path', 'content'],
  output: { path: { type: 'string' }, size: { type: 'integer', description: 'bytes written' } },
  effect: WRITES,
  async run(box, args) {
    const path = text(args, 'path') ?? ''
    const content = new TextEncoder().encode(text(args, 'content') ?? '')
    if (content.length > MAX_WRITE)
      throw new SandboxError('LIMIT', {
        what: `the content has ${content.length} bytes; write_file accepts at most ${MAX_WRITE}`,
        hint: 'write it in parts with run',
        retry: false,
      })
    await box.files.write(path, content, { executable: args['executable'] === true })
    return { texts: [`written: ${content.length} bytes`], facts: { path, size: content.length } }
  },
}

const deleteFile: Tool = {
  name: 'delete_file',
  title: 'Delete a file',
  description:
    'Deletes a file or an empty directory. With recursive, also deletes the contents of a directory.',
  properties: {
    path: path('the file or directory'),
    recursive: { type: 'boolean', description: 'also delete the contents of a directory' },
  },
  required: ['path'],
  output: { path: { type: 'string' }, deleted: { type: 'boolean' } },
  effect: WRITES,
  async run(box, args) {
    const path = text(args, 'path') ?? ''
    await box.files.delete(path, { recursive: args['recursive'] === true })
    return { texts: ['deleted'], facts: { path, deleted: true } }
  },
}

const listFiles: Tool = {
  name: 'list_files',
  title: 'List a directory',
  description: 'Lists the names in a directory of the sandbox.',
  properties: { path: path('the directory; default: the project') },
  required: [],
  output: {
    more: { type: 'integer', description: 'how many names are not listed' },
    entries: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          kind: { type: 'string', enum: ['file', 'directory', 'link', 'other'] },
          size: { type: ['integer', 'null'], description: 'size of a file in bytes' },
        },
      },
    },
  },
  effect: READS,
  async run(box, args) {
    const listed = await box.files.list(text(args, 'path') ?? '.')
    const { shown, rest } = firstItems(listed.entries)
    const more = listed.more + rest
    const lines = shown.map(({ name, kind, size }) => {
      const mark = kind === 'directory' ? '/' : kind === 'link' ? '@' : ''
      return `${printable(name)}${mark}${size === null ? '' : `  ${size}`}`
    })
    const summary = `${shown.length} names${more > 0 ? `, and ${more} more: use search_files to find them by name` : ''}`
    return { texts: [summary, lines.join('\n')], facts: { more, entries: shown } }
  },
}

const searchFiles: Tool = {
  name: 'search_files',
  title: 'Search files',
  description:
    'Searches the files of a directory for lines that match a regular expression. Without a pattern, finds files by name. Skips .git and node_modules unless path names them.',
  properties: {
    pattern: { type: 'string', description: 'a regular expression; without it, files are found by name' },
    name: { type: 'string', description: 'only files that match: *.ts, src/**/*.ts, or part of a path' },
    path: path('where to search; default: the project'),
    ignore_case: { type: 'boolean', description: 'ignore upper and lower case' },
    max_matches: {
      type: 'number',
      description: 'the maximum number of matches; default: 100',
      minimum: 1,
      maximum: 1000,
    },
  },
  required: [],
  output: {
    more: { type: 'boolean', description: 'whether there are more matches' },
    notSearched: { type: 'array', items: { type: 'string' }, description: 'files of more than 8 MiB' },
    matches: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          line: { type: 'integer', description: 'starts at 1; 0 for a file that was found by name' },
          text: { type: 'string' },
        },
      },
    },
  },
  effect: READS,
  async run(box, args) {
    const found = await box.files.search(text(args, 'pattern') ?? '', {
      path: text(args, 'path'),
      name: text(args, 'name'),
      ignoreCase: args['ignore_case'] === true,
      maxMatches: Math.floor(number(args, 'max_matches') ?? 100),
    })
    const { shown, rest } = firstItems(found.matches)
    const more = found.more || rest > 0
    const lines = shown.map(match => {
      const place = printable(match.path, 4096)
      return match.line === 0 ? place : `${place}:${match.line}: ${match.text}`
    })
    const notSearched = firstItems(found.tooLong).shown.map(file => printable(file, 4096))
    const summary = [
      `${shown.length} found${more ? ', and there are more: narrow the search by path or name' : ''}`,
      ...notSearched.map(file => `not searched, longer than 8 MiB: ${file}`),
    ]
    return { texts: [summary.join('\n'), lines.join('\n')], facts: { more, notSearched, matches: shown } }
  },
}

export const fileTools: readonly Tool[] = [readFile, writeFile, deleteFile, listFiles, searchFiles]
