/** The links at protected and denied names: what they say, and through what the kernel goes. The kernel follows none of them. */
import { readlinkSync } from 'node:fs'
import { absent, lookOrUnseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { dirname, resolve } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'

/** The kernel's own limit on links in a path. */
export const MAX_LINKS = 40

/** Undefined when the link is gone. */
export function linkText(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    return absent(error, path)
  }
}

/**
 * The kernel goes into `a` for `a/..`, and a sandbox could replace `a` by a link to elsewhere. A path in `/proc` is another for
 * each process. So pen obeys no such text.
 */
export function linkTarget(link: string, text: string): string {
  const isBack = /(?:^|\/)(?!\.{0,2}\/)[^/]+\/+(?:\.\/+)*\.\.(?:\/|$)/.test(text)
  if (!isBack && !leadsThroughProc(linksOf(link, textAt))) return resolve(dirname(link), text)
  throw new PenError('PATH_REFUSED', {
    what: `the link is protected or denied, and leads through ${isBack ? 'a directory and back' : '/proc'} (${printable(text, 200)})`,
    at: printable(link, 1024),
    hint: 'make it a link to a file, without ".." after a name: ln -sfn TARGET LINK',
  })
}

/** Where pen may not look, a sandbox of the same user finds nothing either. */
function textAt(path: string): string | undefined {
  const stats = lookOrUnseen(path)
  return stats !== 'unseen' && stats?.isSymbolicLink() ? linkText(path) : undefined
}

/** Then it is another file for each process. */
export const leadsThroughProc = (links: readonly string[]): boolean => links.at(-1) === '/proc'

/** The links through which the kernel goes, up to `/proc`. `textOf` is undefined for what is no link. */
export function linksOf(path: string, textOf: (path: string) => string | undefined): readonly string[] {
  const links: string[] = []
  const rest = path.split('/')
  for (let done = '', name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '' || name === '.') continue
    const here = name === '..' ? dirname(done || '/') : `${done}/${name}`
    if (here === '/proc') return [...links, here]
    const text = name === '..' ? undefined : textOf(here)
    if (text === undefined) {
      done = here === '/' ? '' : here
      continue
    }
    if (links.push(here) > MAX_LINKS) break
    if (text.startsWith('/')) done = ''
    rest.unshift(...text.split('/'))
  }
  return links
}
