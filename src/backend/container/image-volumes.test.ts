import { expect, test } from 'bun:test'
import { refuseVolumes } from './image-volumes.ts'

const binds = [{ from: '/home/u/project', at: '/home/u/project', mode: 'rw' as const }]

test('a volume of an image may not be in a granted tree, however it is spelled', () => {
  for (const path of [
    '/home/u/project',
    '/home/u/project/new',
    '/data/../home/u/project/x',
    'home/u/project/x',
  ])
    expect(() => refuseVolumes([path], binds)).toThrow('inside a directory of the host')
})

test('volumes outside of granted trees are allowed', () => {
  expect(() => refuseVolumes(['/data', '/home/u/projects', '/home'], binds)).not.toThrow()
})
