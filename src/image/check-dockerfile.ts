/**
 * Refuses instructions of a project's Dockerfile that an engine runs outside the build: on the host's network or with the
 * host's files. A person who agrees to a Dockerfile cannot be expected to know them.
 */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'

interface Instruction {
  /** In capitals. An instruction after ONBUILD is an instruction of its own. */
  readonly name: string
  readonly text: string
  readonly line: number
}

/** One entry per instruction, with continuation lines joined. Comments and empty lines in between are skipped. */
export function instructionsOf(dockerfile: string): Instruction[] {
  const found: Instruction[] = []
  let joined = ''
  let begin = 0
  for (const [i, raw] of dockerfile.split(/\r?\n/).entries()) {
    if (/^\s*(#.*)?$/.test(raw)) continue
    if (joined === '') begin = i + 1
    // Engines differ in how they treat blanks here. A keyword that is split over two lines is still found.
    const [, text = '', continued] = /^(.*?)(\\[ \t]*)?$/.exec(joined === '' ? raw : raw.trimStart()) ?? []
    joined += text
    if (continued !== undefined) continue
    found.push(instruction(joined, begin))
    joined = ''
  }
  if (joined !== '') found.push(instruction(joined, begin))
  return found
}

function instruction(joined: string, line: number): Instruction {
  const [, name = '', text = ''] = /^\s*(?:ONBUILD\s+)*(\S+)\s*(.*)$/is.exec(joined) ?? []
  return { name: name.toUpperCase(), text, line }
}

interface Rule {
  readonly in: readonly string[]
  readonly finds: RegExp
  readonly why: string
  readonly fix: string
}

const RULES: readonly Rule[] = [
  {
    in: ['RUN'],
    finds: /^--/,
    why: 'flags of RUN reach the files and the network of the host in some engines',
    fix: 'copy files with COPY, and fetch what is needed with RUN alone',
  },
  {
    in: ['ADD'],
    finds: /\/\/|git@|github\.com|[^\w./*?+@ \t"[\],=:-]/i,
    why: 'the engine fetches for ADD itself, and no rule of the policy applies',
    fix: 'use COPY for files of the project, and RUN curl for others',
  },
  {
    in: ['RUN', 'COPY', 'ADD'],
    finds: /(?:^|\s)\d*<<-?["'\w\\]/,
    why: 'a here-document hides where an instruction ends',
    fix: 'put it into a file of the project and COPY that',
  },
]

/** Throws for the first instruction that is not allowed. */
export function checkDockerfile(dockerfile: string, path: string): void {
  if (/^\s*#\s*escape\s*=/im.test(dockerfile))
    throw refused(path, 1, 'pen reads no escape character other than "\\"', 'remove the directive')
  for (const { name, text, line } of instructionsOf(dockerfile))
    for (const rule of RULES)
      if (rule.in.includes(name) && rule.finds.test(text))
        throw refused(path, line, `"${printable(`${name} ${text}`, 80)}" is not built: ${rule.why}`, rule.fix)
}

const refused = (file: string, line: number, what: string, hint: string): PenError =>
  new PenError('CONFIG_VALUE', { what, at: { file, line, column: 1 }, hint })

/** Names of images that the Dockerfile starts from or copies from, except its own stages. */
export function imagesNamed(dockerfile: string, args: ReadonlyMap<string, string>): string[] {
  const values = new Map(args)
  const stages = new Set<string>(['scratch'])
  const named = new Set<string>()
  const use = (word: string): void => {
    const name = word.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, a, b) => values.get(a ?? b) ?? '')
    if (!stages.has(name.toLowerCase()) && !/^\d+$/.test(name)) named.add(name)
  }
  for (const { name, text } of instructionsOf(dockerfile)) {
    if (name === 'ARG' && stages.size === 1) {
      const [, key = '', value = ''] = /^(\w+)=["']?([^"']*)["']?$/.exec(text.trim()) ?? []
      if (key !== '' && !values.has(key)) values.set(key, value)
    }
    if (name === 'COPY') {
      const from = /--from=(\S+)/.exec(text)?.[1]
      if (from !== undefined) use(from)
    }
    if (name !== 'FROM') continue
    const [, image = '', stage] = /^(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$/i.exec(text) ?? []
    use(image)
    stages.add((stage ?? `stage ${stages.size}`).toLowerCase())
  }
  return [...named]
}
