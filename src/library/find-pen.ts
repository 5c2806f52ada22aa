/**
 * Finds the pen binary that the library starts on the host. A sandbox must not be able to choose it. So the library never searches
 * the current directory, PATH, or the project.
 */
import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { packageOf } from '../base/pen-places.ts'
import { isAbsolute } from '../base/posix-path.ts'
import { SandboxError } from './sandbox-error.ts'

interface PenLookup {
  /** The option `pen`. */
  readonly named: string | undefined
  /** The canonical path of the project. */
  readonly project: string
  /** `PEN_PROGRAM`. */
  readonly variable: string | undefined
  /** The file of this code: in pen's package, or a bundle. */
  readonly here: string | undefined
}

export function findPen({ named, project, variable, here }: PenLookup): string {
  if (named !== undefined) return existing(named, 'the option pen')
  if (variable !== undefined && variable !== '') return outside(existing(variable, 'PEN_PROGRAM'), project)
  const beside = here === undefined ? undefined : besideLibrary(here)
  if (beside !== undefined) return beside
  const installed = here === undefined ? undefined : besideBundle(here)
  if (installed !== undefined) return outside(installed, project)
  throw new SandboxError('MISSING_TOOL', {
    what: 'cannot find the pen binary: a bundle does not contain it',
    at: here,
    hint: 'leave pen out of the bundle (esbuild --external:pen), or give the absolute path of the binary: Sandbox.start({ pen: "/opt/pen/dist/pen", … }) or PEN_PROGRAM',
  })
}

/**
 * The file of this module, or of the bundle that contains it. A CommonJS bundle has no `import.meta.url`: there it is the program
 * that was started. (`__filename` would be the path of this source at build time.)
 */
export function ownFile(): string | undefined {
  const { url } = import.meta as { url?: string }
  if (typeof url === 'string' && url.startsWith('file:')) return fileURLToPath(url)
  const [, program] = process.argv
  return program !== undefined && isAbsolute(program) && existsSync(program)
    ? realpathSync(program)
    : undefined
}

/** In pen's package or in a clone of its repository. */
function besideLibrary(here: string): string | undefined {
  const home = packageOf(here)
  const found = home === undefined ? undefined : `${home}/dist/pen`
  return found !== undefined && existsSync(found) ? found : undefined
}

/** In the package that Node resolves from the bundle's directory. */
function besideBundle(here: string): string | undefined {
  for (const name of ['pen', 'pen-sandbox'])
    try {
      return besideLibrary(createRequire(here).resolve(name))
    } catch {
      // Not installed under this name.
    }
  return undefined
}

function existing(path: string, what: string): string {
  if (isAbsolute(path) && existsSync(path)) return path
  throw new SandboxError('MISSING_TOOL', {
    what: isAbsolute(path) ? `${what} names a file that does not exist` : `${what} is not an absolute path`,
    at: path,
    hint: 'give the absolute path of the pen binary, such as /usr/local/bin/pen',
  })
}

/** A variable may come from a project's `.env`, and packages in the project from the sandbox. */
function outside(path: string, project: string): string {
  const real = realpathSync(path)
  if (!real.startsWith(`${project}/`)) return real
  throw new SandboxError('PATH_REFUSED', {
    what: 'the pen binary is in the project, where the sandbox could have replaced it',
    at: real,
    hint: 'install pen outside the project; or name this one, if you trust it: Sandbox.start({ pen: … })',
  })
}
