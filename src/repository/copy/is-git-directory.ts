/** Whether git would take a sandbox's directory for one. A sandbox may have replaced any part of it. */
import { lookOrUnseen } from '../../base/beneath/look-at.ts'

/** The least that git needs. No link is followed, and a part that pen cannot see does not count. */
export function isGitDirectory(dir: string): boolean {
  const kindOf = (name: string): 'file' | 'directory' | undefined => {
    const stats = lookOrUnseen(`${dir}/${name}`)
    if (stats === undefined || stats === 'unseen') return undefined
    return stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : undefined
  }
  return kindOf('HEAD') === 'file' && kindOf('objects') === 'directory' && kindOf('refs') === 'directory'
}
