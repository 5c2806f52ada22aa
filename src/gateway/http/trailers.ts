/**
 * Fields after a body. Some servers merge them into the head, which is judged and sent before they come. So only fields
 * pass that mean nothing in a head: checksums, times, and names of the program's own.
 */
import { endToEnd, type Field } from './field.ts'

/** Fields of a head that servers act on: where a request goes, what it may do, and how its body is read. */
const OF_HEAD =
  /^(?:host|expect|range|pragma|via|from|origin|referer|cookie2?|set-cookie2?|forwarded|destination|depth|overwrite|location|refresh|vary|te|trailer|max-forwards|retry-after|www-authenticate|dnt|a-im|accept(?:-.*)?|if-.*|content-(?!digest$).*|cache-.*|sec-.*|access-control-.*|x-(?:forwarded|original|rewrite|override|http|method|envoy|real|client|cluster|remote|amz|goog|ms)-.*)$|method|url|uri|path|host|auth|token|key|secret|copy-source|rename-source/

/** Servers fold `_` and `.`. */
export const passableTrailers = (fields: readonly Field[]): Field[] =>
  endToEnd(fields).filter(({ key }) => !OF_HEAD.test(key.replaceAll(/[_.]/g, '-')))
