/** Breaks a text at its spaces into lines of at most `width` characters. A longer word has a line of its own. */
export function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap(paragraph => {
    const lines: string[] = []
    let line = ''
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    return [...lines, line]
  })
}

/** The first line begins with `head`, the others below what follows it. */
export const hang = (head: string, text: string, width: number): string[] =>
  wrap(text, Math.max(1, width - head.length)).map(
    (line, i) => `${i === 0 ? head : ' '.repeat(head.length)}${line}`,
  )
