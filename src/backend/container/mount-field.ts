import { PenError } from '../../base/error.ts'

/**
 * One `--mount` of an engine. Its value is a line of CSV, so a path may hold whatever a path can, quoted by CSV's rules. Only a
 * carriage return is lost by the engines' reader, and is refused before it names another file.
 */
export function mountField(fields: readonly (readonly [string, string] | string)[]): string {
  return fields
    .map(field => (typeof field === 'string' ? field : quoted(`${field[0]}=${field[1]}`)))
    .join(',')
}

function quoted(text: string): string {
  if (/[\r\0]/.test(text))
    throw new PenError('PATH_REFUSED', {
      what: 'a path with a carriage return cannot be mounted by a container engine',
      at: text,
      hint: 'rename it, or use the process backend',
    })
  return /[",\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
