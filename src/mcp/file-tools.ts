import { printable } from '../base/printable.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { firstItems, MOST_SHOWN, showBytes } from './shown.ts'
import { number, READS, type Tool, text, WRITES } from './tool.ts'

/** For a model that asks for more than is shown by itself. */
const MOST_READ = 64 * 1024
const MOST_WRITTEN = 4 * 2 ** 20

const path = (of: string) =>
  ({ type: 'string', description: `${of}, relative to the project or absolute` }) as const

const readFile: Tool = {
  name: 'read_file',
  title: 'Read a file',
  description: `Reads a file as the sandbox has it, ${MOST_SHOWN / 1024} KiB at a time. Files that the user granted elsewhere are read by their absolute path.`,
  properties: {
    path: path('the file'),
    offset: { type: 'number', description: 'the first byte', minimum: 0, maximum: 2 ** 52 },
    length: { type: 'number', description: 'no more bytes than these', minimum: 1, maximum: MOST_READ },
  },
  required: ['path'],
  output: {
    size: { type: 'integer', description: 'how many bytes of the file this is' },
    more: { type: 'boolean', description: 'whether the file goes on' },
    nextOffset: { type: 'integer', description: 'where it goes on' },
    encoding: { type: 'string', enum: ['utf-8', 'base64'], description: 'base64 for what is no text' },
    content: { type: 'string' },
  },
  effect: READS,
  async run(box, given) {
    const from = Math.floor(number(given, 'offset') ?? 0)
    const most = Math.floor(number(given, 'length') ?? MOST_SHOWN)
    // One more than is shown tells whether there is more.
    const bytes = await box.files.read(text(given, 'path') ?? '', { from, length: most + 1 })
    const { content, encoding, length: size } = showBytes(bytes.subarray(0, most), bytes.length <= most)
    const more = size < bytes.length
    const said = [
      `${size} bytes`,
      ...(encoding === 'base64' ? ['not text, shown in base64'] : []),
      ...(more ? [`it goes on at offset ${from + size}`] : []),
    ]
    const facts = { size, more, ...(more && { nextOffset: from + size }), encoding, content }
    return { texts: [said.join('; '), content], facts }
  },
}

const writeFile: Tool = {
  name: 'write_file',
  title: 'Write a file',
  description:
    'Writes a whole file, and makes the directories above it. What the host would run later, such as git hooks, cannot be written.',
  properties: {
    path: path('the file'),
    content: { type: 'string', description: 'all that it is to hold' },
    executable: { type: 'boolean', description: 'whether a new file may be executed' },
  },
  required: ['path', 'content'],
  output: { path: { type: 'string' }, size: { type: 'integer', description: 'bytes written' } },
  effect: WRITES,
  async run(box, given) {
    const path = text(given, 'path') ?? ''
    const content = new TextEncoder().encode(text(given, 'content') ?? '')
    if (content.length > MOST_WRITTEN)
      throw new SandboxError('LIMIT', {
        what: `write_file writes at most ${MOST_WRITTEN} bytes, and this is ${content.length}`,
        hint: 'write it in parts, by run',
        retry: false,
      })
    await box.files.write(path, content, { executable: given['executable'] === true })
    return { texts: [`written: ${content.length} bytes`], facts: { path, size: content.length } }
  },
}

const deleteFile: Tool = {
  name: 'delete_file',
  title: 'Delete a file',
  description: 'Deletes a file or an empty directory; with recursive a directory and all in it.',
  properties: {
    path: path('the file or directory'),
    recursive: { type: 'boolean', description: 'whether a directory goes with all in it' },
  },
  required: ['path'],
  output: { path: { type: 'string' }, deleted: { type: 'boolean' } },
  effect: WRITES,
  async run(box, given) {
    const path = text(given, 'path') ?? ''
    await box.files.delete(path, { recursive: given['recursive'] === true })
    return { texts: ['deleted'], facts: { path, deleted: true } }
  },
}

const listFiles: Tool = {
  name: 'list_files',
  title: 'List a directory',
  description: 'Lists the names in a directory, as the sandbox has it.',
  properties: { path: path('the directory; the project where nothing is said') },
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
          size: { type: ['integer', 'null'], description: 'bytes of a file' },
        },
      },
    },
  },
  effect: READS,
  async run(box, given) {
    const listed = await box.files.list(text(given, 'path') ?? '.')
    const { shown, rest } = firstItems(listed.entries)
    const more = listed.more + rest
    const lines = shown.map(({ name, kind, size }) => {
      const mark = kind === 'directory' ? '/' : kind === 'link' ? '@' : ''
      return `${printable(name)}${mark}${size === null ? '' : `  ${size}`}`
    })
    const said = `${shown.length} names${more > 0 ? `, and ${more} more: search_files finds them by name` : ''}`
    return { texts: [said, lines.join('\n')], facts: { more, entries: shown } }
  },
}

const searchFiles: Tool = {
  name: 'search_files',
  title: 'Search files',
  description:
    'Looks for a regular expression in the files of a directory, line by line, or with only a name for files. Passes over .git and node_modules, unless they are named.',
  properties: {
    pattern: { type: 'string', description: 'a regular expression; left out, files are found by their name' },
    name: { type: 'string', description: 'only files like this: *.ts, src/**/*.ts, or part of a path' },
    path: path('where; the project where nothing is said'),
    ignore_case: { type: 'boolean', description: 'whether A is a' },
    most: {
      type: 'number',
      description: 'how many matches; 100 where nothing is said',
      minimum: 1,
      maximum: 1000,
    },
  },
  required: [],
  output: {
    more: { type: 'boolean', description: 'whether there are more matches' },
    matches: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          line: { type: 'integer', description: 'from 1; 0 for a file that was found by its name' },
          text: { type: 'string' },
        },
      },
    },
  },
  effect: READS,
  async run(box, given) {
    const found = await box.files.search(text(given, 'pattern') ?? '', {
      path: text(given, 'path'),
      name: text(given, 'name'),
      ignoreCase: given['ignore_case'] === true,
      most: Math.floor(number(given, 'most') ?? 100),
    })
    const { shown, rest } = firstItems(found.matches)
    const more = found.more || rest > 0
    const lines = shown.map(match => {
      const place = printable(match.path, 4096)
      return match.line === 0 ? place : `${place}:${match.line}: ${match.text}`
    })
    const said = `${shown.length} found${more ? ', and there are more: narrow it by path or name' : ''}`
    return { texts: [said, lines.join('\n')], facts: { more, matches: shown } }
  },
}

export const fileTools: readonly Tool[] = [readFile, writeFile, deleteFile, listFiles, searchFiles]
