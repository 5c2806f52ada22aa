import { describe, expect, test } from 'bun:test'
import { textFiles } from './archive.ts'

function entry(name: string, kind: string, text: string, size = Buffer.byteLength(text)): Buffer {
  const head = Buffer.alloc(512)
  head.write(name, 0, 'latin1')
  head.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  head.write(kind, 156, 'latin1')
  const body = Buffer.from(text)
  return Buffer.concat([head, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}
const END = Buffer.alloc(1024)

describe('the archive of an engine', () => {
  test('gives its plain files, behind extended headers and directories', () => {
    const archive = [
      entry('x', 'x', '27 mtime=1.1\n'),
      entry('apt/', '5', ''),
      entry('apt/a.list', '0', 'deb a\n'),
      entry('b', '\0', 'ü'.repeat(300)),
    ]
    expect(textFiles(Buffer.concat([...archive, END]))).toEqual([
      { name: 'apt/a.list', text: 'deb a\n' },
      { name: 'b', text: 'ü'.repeat(300) },
    ])
  })

  test('gives all of them, however many', () => {
    const many = Array.from({ length: 300 }, (_, i) => entry(`${i}`, '0', `${i}`))
    expect(textFiles(Buffer.concat([...many, END]))).toHaveLength(300)
  })

  test('gives no link, no device and nothing that is not text', () => {
    const archive = [
      entry('passwd', '2', ''),
      entry('dev', '3', ''),
      entry('binary', '0', 'a\0b'),
      entry('broken', '0', 'a\ufffdb'),
    ]
    expect(textFiles(Buffer.concat([...archive, END]))).toEqual([])
  })

  test('with a wrong size is read up to that entry', () => {
    const good = entry('a', '0', 'a')
    expect(textFiles(Buffer.concat([good, entry('b', '0', 'b', 1e9), END]))).toEqual([
      { name: 'a', text: 'a' },
    ])
    const negative = entry('b', '0', 'b')
    negative.write('-0000000001', 124, 'latin1')
    expect(textFiles(Buffer.concat([good, negative, END]))).toEqual([{ name: 'a', text: 'a' }])
    expect(textFiles(Buffer.from('short'))).toEqual([])
  })
})
