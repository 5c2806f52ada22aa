/**
 * The three ways into a project's running sandbox: a program with the library, an MCP client, and the command
 * line.
 */
import { withClient } from './mcp-client.ts'
import type { Place } from './place.ts'
import { withProgram } from './program.ts'

export interface Ran {
  readonly code: number
  readonly out: string
}

export interface Way {
  readonly name: string
  /** Words that no shell reads. */
  run(...words: string[]): Promise<Ran>
  /** The content of the file, or its refusal. The command line has no calls for files. */
  readonly files?: {
    read(path: string): Promise<FileAnswer>
    write(path: string, content: string, executable?: boolean): Promise<FileAnswer>
    delete(path: string): Promise<FileAnswer>
  }
}

export type FileAnswer = { readonly text: string } | { readonly refused: string }

export async function byEachWay(place: Place, ask: (way: Way) => Promise<void>): Promise<void> {
  await byLibrary(place, ask)
  await byMcp(place, ask)
  await ask({
    name: 'by the command line',
    run: async (...words) => {
      const { code, said } = await place.penBeside('exec', '--', ...words)
      return { code, out: said }
    },
  })
}

const byLibrary = (place: Place, ask: (way: Way) => Promise<void>): Promise<void> =>
  withProgram(place, 'node', async program => {
    await program.ask('start', { project: place.project })
    const call = async (op: 'read' | 'write' | 'delete', order: object): Promise<FileAnswer> => {
      try {
        return { text: String(await program.ask(op, order)) }
      } catch {
        return { refused: (await program.failure(op, order)).code }
      }
    }
    await ask({
      name: 'by the library',
      run: async (...words) => {
        const { exitCode, stdout, stderr } = await program.exec(words)
        return { code: exitCode, out: `${stdout}${stderr}` }
      },
      files: {
        read: path => call('read', { path }),
        write: (path, content, executable) => call('write', { path, content, options: { executable } }),
        delete: path => call('delete', { path }),
      },
    })
  })

const byMcp = (place: Place, ask: (way: Way) => Promise<void>): Promise<void> =>
  withClient(place, {}, async client => {
    const call = async (tool: string, given: Record<string, unknown>): Promise<FileAnswer> => {
      const { failed, facts, texts } = await client.call(tool, given)
      const { error } = facts as { error?: { code: string } }
      return failed ? { refused: error?.code ?? '' } : { text: texts.slice(1).join('\n') }
    }
    await ask({
      name: 'by MCP',
      run: async (...words) => {
        const { facts, texts } = await client.call('run', { argv: words })
        const out = texts.slice(1).map(text => text.replace(/^std(out|err):\n/, ''))
        return { code: Number(facts['exitCode']), out: out.join('') }
      },
      files: {
        read: path => call('read_file', { path }),
        write: (path, content, executable) => call('write_file', { path, content, executable }),
        delete: path => call('delete_file', { path }),
      },
    })
  })
