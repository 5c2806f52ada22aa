/** Reads the limit for core dumps of the supervisor, while a project's sandbox runs. */
import { readdirSync, readFileSync } from 'node:fs'

/** The returned function stops and gives the last limit that was seen, such as `1 1`. */
export function watchCoreLimit(home: string): () => string {
  let last = ''
  const timer = setInterval(() => {
    for (const pid of readdirSync('/proc')) {
      if (!/\/pen\0run\0/.test(read(pid, 'cmdline')) || !read(pid, 'environ').includes(`HOME=${home}\0`))
        continue
      const [, soft, hard] = /^Max core file size +(\S+) +(\S+)/m.exec(read(pid, 'limits')) ?? []
      if (soft !== undefined) last = `${soft} ${hard}`
    }
  }, 100)
  return () => {
    clearInterval(timer)
    return last
  }
}

function read(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}
