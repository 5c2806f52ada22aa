import { expect, test } from 'bun:test'
import { withUser } from './accounts.ts'

const PLANNED = 'root:x:0:0:root:/root:/sbin/nologin\nagent:x:1002:1002::/home/agent:/usr/bin/fish\n'

test('an image’s accounts stay; the user’s own is added with a shell that the image has', () => {
  const image = 'root:x:0:0::/root:/bin/bash\nwww:x:33:33::/:/bin/false\nagent:x:1000:1000::/h:/bin/bash\n'
  expect(withUser(image, PLANNED)).toBe(
    'root:x:0:0::/root:/bin/bash\nwww:x:33:33::/:/bin/false\nagent:x:1002:1002::/home/agent:/bin/bash\n',
  )
})

test('an account of the same id is replaced, and its shell stays', () => {
  expect(withUser('node:x:1002:1002::/home/node:/bin/zsh\n', PLANNED)).toBe(
    'agent:x:1002:1002::/home/agent:/bin/zsh\n',
  )
})

test('a shell that is not a plain path is not copied', () => {
  expect(withUser('agent:x:1:1::/:/bin/sh -c evil\n', PLANNED)).toBe(
    'agent:x:1002:1002::/home/agent:/bin/sh\n',
  )
})

test('an image without accounts gets the plan’s', () => {
  expect(withUser('', PLANNED)).toBe(PLANNED)
})

test('groups have no shell', () => {
  expect(withUser('root:x:0:\nagent:x:1000:\n', 'agent:x:5:\n')).toBe('root:x:0:\nagent:x:5:\n')
})
