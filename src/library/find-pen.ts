/**
 * Which pen binary the library starts, on the host. What a sandbox can write must not decide it: nothing is looked for in the current
 * directory, in PATH, or below the project.
 */
import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { packageOf } from '../base/pen-places.ts'
import { isAbsolute } from '../base/posix-path.ts'
import { SandboxError } from './sandbox-error.ts'

export interface Asked {
  /** What the program says. */
  readonly named: string | undefined
  /** The project of the sandbox: canonical. */
  readonly project: string
  /** `PEN_PROGRAM`. */
  readonly variable: string | undefined
  /** The file that this code is in: the package's own, or a bundle. */
  readonly here: string | undefined
}

export function findPen({ named, project, variable, here }: Asked): string {
  if (named !== undefined) return existing(named, 'the option pen')
  if (variable !== undefined && variable !== '') return outside(existing(variable, 'PEN_PROGRAM'), project)
  const beside = here === undefined ? undefined : besideLibrary(here)
  if (beside !== undefined) return beside
  const installed = here === undefined ? undefined : besideBundle(here)
  if (installed !== undefined) return outside(installed, project)
  throw new SandboxError('MISSING_TOOL', {
    what: 'the pen binary is not beside the library: a bundle does not carry it',
    at: here,
    hint: 'leave pen out of the bundle (esbuild --external:pen), or name the binary by its whole path: Sandbox.start({ pen: "/opt/pen/dist/pen", … }) or PEN_PROGRAM',
  })
}

/**
 * Of this very module, or of the bundle that it is a part of. CommonJS, as a bundler may make it, has no address: there it is the
 * program that was started. (`__filename` would be the path of this source where the package was built.)
 */
export function ownFile(): string | undefined {
  const { url } = import.meta as { url?: string }
  if (typeof url === 'string' && url.startsWith('file:')) return fileURLToPath(url)
  const [, program] = process.argv
  return program !== undefined && isAbsolute(program) && existsSync(program)
    ? realpathSync(program)
    : undefined
}

/** In pen's package, or in a clone of it. */
function besideLibrary(here: string): string | undefined {
  const home = packageOf(here)
  const found = home === undefined ? undefined : `${home}/dist/pen`
  return found !== undefined && existsSync(found) ? found : undefined
}

/** In the packages of the bundle, as Node finds them for every other import that it left out. */
function besideBundle(here: string): string | undefined {
  try {
    return besideLibrary(createRequire(here).resolve('pen'))
  } catch {
    return undefined
  }
}

function existing(path: string, what: string): string {
  if (isAbsolute(path) && existsSync(path)) return path
  throw new SandboxError('MISSING_TOOL', {
    what: isAbsolute(path) ? `${what} names a file that does not exist` : `${what} is not an absolute path`,
    at: path,
    hint: 'give the whole path of the pen binary, such as /usr/local/bin/pen',
  })
}

/** A variable may come from a project's `.env`, and packages below the project from the sandbox itself. */
function outside(path: string, project: string): string {
  const real = realpathSync(path)
  if (!real.startsWith(`${project}/`)) return real
  throw new SandboxError('PATH_REFUSED', {
    what: 'the pen binary that was found lies in the project, where the sandbox could have put it',
    at: real,
    hint: 'install pen outside of the project; or name this one, if you trust it: Sandbox.start({ pen: … })',
  })
}
