import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { relativeServices } from './relative-services.ts'

let root = ''
let server: Server
beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-services-')))
  mkdirSync(join(root, 'run'))
  server = createServer()
  await new Promise<void>(resolve => server.listen(join(root, 'run/s.sock'), resolve))
})
afterAll(() => {
  server.close()
  rmSync(root, { recursive: true, force: true })
})

const uid = process.getuid?.()
const inode = () => lstatSync(join(root, 'run/s.sock')).ino % 2 ** 32

describe('a service with a relative name', () => {
  test('is found by its inode, and without one by every socket of that name', () => {
    const found = { paths: [join(root, 'run/s.sock')], unlocated: [] }
    const bound = { name: 'run/s.sock', inode: inode(), uid }
    expect(relativeServices([root], [], () => [bound])).toEqual(found)
    expect(relativeServices([root], ['run/s.sock', 'run/s.sock'], () => undefined)).toEqual(found)
    expect(relativeServices([root], [], () => [{ ...bound, inode: inode() + 1 }]).paths).toEqual([])
  })

  test('that is nowhere to be found is named, unless it is another user’s', () => {
    const lost = { name: 'lost.sock', inode: 1, uid }
    expect(relativeServices([root], [], () => [lost]).unlocated).toEqual(['lost.sock'])
    expect(relativeServices([root], [], () => [{ ...lost, uid: 4_000_000 }]).unlocated).toEqual([])
    expect(relativeServices([root], ['lost.sock'], () => undefined).unlocated).toEqual(['lost.sock'])
  })
})
