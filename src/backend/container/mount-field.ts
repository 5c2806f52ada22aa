import { PenError } from '../../base/error.ts'

/**
 * One `--mount` value of an engine. It is a line of CSV, so a path may contain any character, quoted by CSV's rules.
 * Engines drop a carriage return, which would name another file, so it is refused.
 */
export function mountField(fields: readonly (readonly [string, string] | string)[]): string {
  return fields
    .map(field => (typeof field === 'string' ? field : quoted(`${field[0]}=${field[1]}`)))
    .join(',')
}

function quoted(text: string): string {
  if (/[\r\0]/.test(text))
    throw new PenError('PATH_REFUSED', {
      what: 'container engines cannot mount a path with a carriage return',
      at: text,
      hint: 'rename it, or use the process backend',
    })
  return /[",\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
