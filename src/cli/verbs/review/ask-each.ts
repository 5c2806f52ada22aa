import type { Change } from '../../../review/change.ts'
import { withDirectories } from '../../../review/choose-changes.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import type { Review } from '../../../review/open-review.ts'
import { askLetter } from '../../frame/ask.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { reviewDifference } from '../../render/review-difference.ts'
import { reviewList, showPath } from '../../render/review-list.ts'

/** Shows each change and asks: yes, no, all the rest, quit. A new file brings its new directories. */
export function askEach(
  changes: readonly Change[],
  { places }: Review,
  { terminal, name }: { readonly terminal: Terminal; readonly name: string | undefined },
): readonly Change[] {
  using directories = new OpenDirectories(places.workspace, places.tree, 'read')
  const { paint } = terminal
  const chosen: Change[] = []
  let rest: 'ask' | 'all' | 'none' = 'ask'
  for (const change of changes) {
    if (rest === 'ask') {
      const list = reviewList([change], { paint, renames: new Map(), named: [change.path], name })
      for (const line of [...list, ...reviewDifference(change, directories, paint)]) terminal.print(line)
      const letter = askLetter(`Apply ${showPath(change.path)}?`, 'ynaq', terminal)
      if (letter === 'a') rest = 'all'
      // An answer that is none of these, and the end of input, applies nothing more.
      else if (letter === 'q' || letter === undefined) rest = 'none'
      else if (letter === 'y') chosen.push(change)
    }
    if (rest === 'all') chosen.push(change)
  }
  return withDirectories(chosen, changes)
}
