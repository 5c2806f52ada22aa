/** `pen init --from-devcontainer`: writes `.pen/config.json` from the project's own devcontainer file. Nothing takes effect. */
import { readdirSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { asWord, printable, shellWord } from '../../../base/printable.ts'
import { readRegularFile } from '../../../base/regular-file.ts'
import { propose } from '../../../config/initialize.ts'
import { withoutComments } from '../../../config/json/comments.ts'
import { isObject, readJson } from '../../../config/json/json.ts'
import { decodeText, MAX_BYTES } from '../../../config/json/source-text.ts'
import type { Project } from '../../../config/project.ts'
import { type Proposal, readDevcontainer } from '../../../image/devcontainer.ts'
import { schemaText } from './schema.ts'

const FOLDER = '.devcontainer'

export async function fromDevcontainer(project: Project): Promise<{ data: object; lines: string[] }> {
  const { workspace } = project.world
  const file = findFile(project)
  const bytes = readRegularFile(file, { maxBytes: MAX_BYTES })
  if (bytes === undefined) throw new PenError('STATE', { what: `${file} was removed in the meantime` })
  const { value } = readJson(Buffer.from(withoutComments(decodeText(bytes, file).text)), file)
  if (!isObject(value))
    throw new PenError('CONFIG_SYNTAX', { what: 'a devcontainer file is an object', at: file })
  const proposal = readDevcontainer(value, file, workspace)
  if (!(await propose(project, schemaText(), proposal.config)))
    throw new PenError('STATE', {
      what: 'this project already has a config of pen',
      at: `${workspace}/.pen`,
      hint: 'move it away, then try again',
    })
  return {
    data: { version: 1, project: workspace, file, ...proposal },
    lines: linesOf(proposal, file, workspace),
  }
}

/** Links are not followed: they could show a file of the home. */
function findFile({ world: { workspace, locate } }: Project): string {
  const named =
    locate(`${workspace}/${FOLDER}`).kind === 'directory' ? readdirSync(`${workspace}/${FOLDER}`) : []
  const paths = [
    `${FOLDER}/devcontainer.json`,
    '.devcontainer.json',
    ...named.map(name => `${FOLDER}/${name}/devcontainer.json`),
  ].map(path => `${workspace}/${path}`)
  const [first, second] = paths.filter(path => {
    const { real, kind } = locate(path)
    return kind === 'file' && real === path
  })
  const isOneOfSeveral = first?.split('/').length === workspace.split('/').length + 3 && second !== undefined
  if (first !== undefined && !isOneOfSeveral) return first
  throw new PenError('STATE', {
    what:
      first === undefined
        ? `${printable(workspace, 4096)} has no devcontainer.json that is a regular file`
        : 'this project has several devcontainer.json',
    at: '--from-devcontainer',
    hint: first === undefined ? 'pen init' : `copy one to ${FOLDER}/devcontainer.json`,
  })
}

function linesOf({ taken, left, setup }: Proposal, file: string, workspace: string): string[] {
  return [
    `written: ${workspace}/.pen/config.json, from ${file}`,
    ...taken.map(text => `taken: ${text}`),
    ...left.map(({ what, why }) => `not taken: ${asWord(what, 200)}: ${why}`),
    'it is not active; fix: pen config diff to review it, then pen config apply',
    ...setup.map(command => {
      const word = shellWord(command)
      return word === undefined
        ? 'then run postCreateCommand yourself, in pen shell'
        : `then, as postCreateCommand says: pen exec -- sh -c ${word}`
    }),
  ]
}
