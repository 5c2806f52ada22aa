import { mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { PenError } from '../../base/error.ts'
import { findTool, TRUSTED_DIRECTORIES } from '../../base/find-tool.ts'
import { join } from '../../base/posix-path.ts'
import { capture } from '../../base/spawn.ts'

interface Question {
  readonly tool: string
  readonly args: readonly string[]
  /** Files whose change may change the answer. The answer itself may name more. */
  readonly watch: (answer: string) => readonly string[]
}

export interface AskContext {
  readonly home: string
  readonly cacheDir: string
  /** Returns the absolute path of a trusted tool, or undefined. Tests inject their own. */
  readonly find?: (name: string) => string | undefined
}

/**
 * Asks a package manager for its configuration and caches the answer until the tool or one of its files changes. Starting npm takes
 * 0.3 s. The tool runs in `/` with a clean environment, so it reads no project configuration.
 * Undefined when the tool is not in a directory that only root can write.
 */
export async function askTool(question: Question, context: AskContext): Promise<string | undefined> {
  const program = (context.find ?? findTool)(question.tool)
  if (program === undefined) return undefined
  const file = join(context.cacheDir, `asked-${question.tool}.json`)
  const stampOf = (answer: string): string =>
    JSON.stringify([program, ...question.args, ...[program, ...question.watch(answer)].map(stamp)])

  const known = recall(file)
  if (known !== undefined && known.stamp === stampOf(known.answer)) return known.answer
  const { code, stdout } = await capture([program, ...question.args], {
    timeoutMs: 10_000,
    cwd: '/',
    maxOutput: 1 << 20,
    env: {
      HOME: context.home,
      PATH: TRUSTED_DIRECTORIES.map(({ path }) => path).join(':'),
      LANG: 'C.UTF-8',
      NO_UPDATE_NOTIFIER: '1',
      npm_config_update_notifier: 'false',
      npm_config_logs_max: '0',
      // npm always creates its cache directory. Keep it out of the user's home.
      npm_config_cache: join(context.cacheDir, 'npm'),
    },
  })
  if (code !== 0)
    throw new PenError('GROUP', {
      what: `${question.tool} did not print its package sources`,
      at: `${program} ${question.args.join(' ')}`,
      hint: `run that command to see why, or allow the hosts with pen allow`,
    })
  mkdirSync(context.cacheDir, { recursive: true, mode: 0o700 })
  writeFileAtomically(file, JSON.stringify({ stamp: stampOf(stdout), answer: stdout }), { mode: 0o600 })
  return stdout
}

/** A broken cache file only costs time. */
function recall(file: string): { stamp: string; answer: string } | undefined {
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof found !== 'object' || found === null || !('stamp' in found) || !('answer' in found))
      return undefined
    const { stamp, answer } = found
    return typeof stamp === 'string' && typeof answer === 'string' ? { stamp, answer } : undefined
  } catch {
    return undefined
  }
}

function stamp(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path)
    return [realpathSync(path), ino, size, mtimeMs, ctimeMs].join(' ')
  } catch {
    return `no ${path}`
  }
}
