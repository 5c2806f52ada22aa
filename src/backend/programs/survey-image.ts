/**
 * What a tool policy needs to know about an image's programs: where they are, which are listed and which are shells.
 */
import type { HostFacts, SystemEntry } from '../../plan/facts.ts'
import { SYSTEM_PATH } from '../../plan/system-view.ts'
import { type HostPath, isWithin } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import { findProgramDirectories, isProgramDirectory } from './directories.ts'
import type { ProgramFiles } from './files.ts'
import { UnsupportedImage } from './image-files.ts'
import { NO_TOOL_FACTS, restrictsTools, surveyTools } from './survey.ts'

/** Ten times what an image with an operating system, compilers and a desktop has. */
const MAX_DIRECTORIES = 20_000
const MAX_STRAYS = 1000

export function surveyImage(
  files: ProgramFiles,
  tools: Policy['tools'],
  /** The directories of the image's PATH. */
  path: readonly string[],
): Pick<HostFacts, 'system' | 'tools'> {
  const system = topOf(files)
  if (!restrictsTools(tools)) return { system, tools: NO_TOOL_FACTS }
  const budget = { left: MAX_DIRECTORIES }
  const search = [...path, ...SYSTEM_PATH]
  const looked = searched(files, search)
  const found = findProgramDirectories(files, system, budget)
  const all = [...new Set([...found, ...looked.filter(isProgramDirectory)])]
  if (budget.left < 0)
    throw new UnsupportedImage(`it has more than ${MAX_DIRECTORIES} directories that may hold programs`)
  const directories = outermost(all)
  const nested = all.filter(directory => !directories.includes(directory))
  const mixed = looked.filter(directory => !isProgramDirectory(directory))
  const facts = surveyTools(tools, { files, system, directories, mixed, nested, search })
  if (facts.strays.length > MAX_STRAYS)
    throw new UnsupportedImage(
      `its PATH has more than ${MAX_STRAYS} programs outside of directories for programs`,
    )
  return { system, tools: facts }
}

/** Every entry of its root, except configuration and mounts. */
function topOf(files: ProgramFiles): SystemEntry[] {
  return files.list('/').flatMap(({ name }): SystemEntry[] => {
    const path = `/${name}` as HostPath
    const status = files.look(path)
    const holdsPrograms =
      status?.kind === 'directory' || (status?.kind === 'file' && (status.mode & 0o111) !== 0)
    return holdsPrograms && name !== 'etc' ? [{ kind: 'tree', path }] : []
  })
}

/** With links resolved, because the real directory is the one to cover. */
const searched = (files: ProgramFiles, search: readonly string[]): string[] => [
  ...new Set(
    search.flatMap(directory => {
      const real = files.real(directory)
      return real !== undefined && files.look(real)?.kind === 'directory' ? [real] : []
    }),
  ),
]

const outermost = (directories: readonly string[]): string[] =>
  directories.filter(inner => !directories.some(outer => outer !== inner && isWithin(inner, outer)))
