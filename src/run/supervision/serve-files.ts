import { printable } from '../../base/printable.ts'
import type { Supervised } from './supervisor.ts'

/** When the file broker opens its socket. Earlier requests wait for it. */
const FILES_AFTER_MS = 60

/** Opens the file broker after a delay, because short runs do not need it. If it cannot listen, the sandbox goes on without it. */
export function serveFiles(sandbox: Supervised, lines: string[]): { finish(): Promise<void> } {
  const { running, prepared, refusals } = sandbox
  const { inside } = running
  if (inside === undefined) return { finish: async () => undefined }
  const tell = (line: string) => void lines.push(line)
  const fail = (error: unknown) => tell(`files: ${printable(String(error))}`)
  let opened: Promise<{ close(): Promise<void> } | undefined> | undefined
  const timer = setTimeout(() => {
    opened = import('./file-broker.ts')
      .then(({ openFileBroker }) => openFileBroker({ prepared, inside, audit: refusals, tell, fail }))
      .catch(error => void fail(error))
  }, FILES_AFTER_MS)
  return {
    finish: async () => {
      clearTimeout(timer)
      await (await opened)?.close()
    },
  }
}
