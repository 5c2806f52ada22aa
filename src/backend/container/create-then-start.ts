/**
 * Makes a container first and starts it later, for a runtime that opens its mounts at the start. Meanwhile a shell
 * waits for pen. If pen dies, the shell removes the container, which nothing else would do.
 */
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { type Captured, capture } from '../../base/spawn.ts'
import { type ContainerOrder, runArguments, runtimeArguments } from './arguments.ts'
import type { Engine } from './engine/engine.ts'

/** Resolves to true to start the container, to false to remove it. */
export type Release = Promise<boolean>

const TIME_LIMIT_MS = 60_000

/**
 * $0 is the file with the container's id. $1 is the number of words that begin every engine command. The rest is the
 * command that makes the container. The shell ignores signals of the terminal: pen decides, or pen's end does.
 */
const SCRIPT = `trap '' HUP INT TERM
own=$1; shift
"$@" >/dev/null || exit
for word do
  shift
  [ "$own" -le 0 ] || set -- "$@" "$word"
  own=$((own - 1))
done
read -r id <"$0"
"$@" init "$id" >/dev/null && read -r go && exec "$@" start "$id" >/dev/null
code=$?
"$@" rm --force --time=0 --ignore "$id" >/dev/null 2>&1
exit "$code"`

export async function createThenStart(
  engine: Engine,
  order: ContainerOrder,
  release: Release,
): Promise<Captured> {
  const shell = findTool('sh')
  if (shell === undefined) throw new PenError('MISSING_TOOL', { what: 'sh was not found on this machine' })
  const own = [engine.program, ...engine.flags]
  const count = own.length + runtimeArguments(order).length
  return await capture([shell, '-c', SCRIPT, order.idFile, `${count}`, ...own, ...runArguments(order)], {
    env: { ...engine.env },
    cwd: '/',
    timeoutMs: TIME_LIMIT_MS,
    input: release.then(go => (go ? 'go\n' : '')),
  })
}
