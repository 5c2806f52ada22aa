import { printable } from '../base/printable.ts'
import { number, type Tool, text } from './tool.ts'

/** What a model reads at once. */
const MOST_READ = 128 * 1024
const MOST_WRITTEN = 4 * 2 ** 20

const path = (of: string) =>
  ({ type: 'string', description: `${of}, relative to the project or absolute` }) as const

const readFile: Tool = {
  name: 'read_file',
  title: 'Read a file',
  description: `Reads a file as the sandbox has it, at most ${MOST_READ / 1024} KiB at a time. Files that the user granted elsewhere are read by their absolute path.`,
  properties: {
    path: path('the file'),
    offset: { type: 'number', description: 'the first byte', minimum: 0, maximum: 2 ** 52 },
    length: { type: 'number', description: 'no more bytes than these', minimum: 1, maximum: MOST_READ },
  },
  required: ['path'],
  readOnly: true,
  async run(box, given) {
    const from = Math.floor(number(given, 'offset') ?? 0)
    const length = Math.floor(number(given, 'length') ?? MOST_READ)
    // One more than is shown tells whether there is more.
    const bytes = await box.files.read(text(given, 'path') ?? '', { from, length: length + 1 })
    const more = bytes.length > length
    const shown = bytes.subarray(0, length)
    const next = more ? `; it goes on at offset ${from + length}` : ''
    return { texts: [`${shown.length} bytes${next}`, new TextDecoder().decode(shown)], facts: { more } }
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
  readOnly: false,
  async run(box, given) {
    const content = new TextEncoder().encode(text(given, 'content') ?? '')
    if (content.length > MOST_WRITTEN)
      return { texts: [`more than ${MOST_WRITTEN} bytes: write it in parts, by run`], failed: true }
    await box.files.write(text(given, 'path') ?? '', content, { executable: given['executable'] === true })
    return { texts: [`written: ${content.length} bytes`] }
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
  readOnly: false,
  async run(box, given) {
    await box.files.delete(text(given, 'path') ?? '', { recursive: given['recursive'] === true })
    return { texts: ['deleted'] }
  },
}

const listFiles: Tool = {
  name: 'list_files',
  title: 'List a directory',
  description: 'Lists the names in a directory, as the sandbox has it.',
  properties: { path: path('the directory; the project where nothing is said') },
  required: [],
  readOnly: true,
  async run(box, given) {
    const { entries, more } = await box.files.list(text(given, 'path') ?? '.')
    const lines = entries.map(({ name, kind, size }) => {
      const mark = kind === 'directory' ? '/' : kind === 'link' ? '@' : ''
      return `${printable(name)}${mark}${size === null ? '' : `  ${size}`}`
    })
    return {
      texts: [`${entries.length} names${more > 0 ? `, and ${more} more` : ''}`, lines.join('\n')],
      facts: { entries, more },
    }
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
  readOnly: true,
  async run(box, given) {
    const { matches, more } = await box.files.search(text(given, 'pattern') ?? '', {
      path: text(given, 'path'),
      name: text(given, 'name'),
      ignoreCase: given['ignore_case'] === true,
      most: Math.floor(number(given, 'most') ?? 100),
    })
    const lines = matches.map(match => {
      const place = printable(match.path, 4096)
      return match.line === 0 ? place : `${place}:${match.line}: ${match.text}`
    })
    return {
      texts: [`${matches.length} found${more ? ', and there are more' : ''}`, lines.join('\n')],
      facts: { more },
    }
  },
}

export const fileTools: readonly Tool[] = [readFile, writeFile, deleteFile, listFiles, searchFiles]
