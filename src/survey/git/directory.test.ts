import { expect, test } from 'bun:test'
import { userConfigFiles } from './directory.ts'

const USUAL = ['/home/a/.gitconfig', '/home/a/.config/git/config', '/etc/gitconfig']

test("the user's global settings are found where git looks, and where the environment points", () => {
  expect(userConfigFiles('/home/a', {})).toEqual(USUAL)
  const env = { XDG_CONFIG_HOME: '/home/a/etc', GIT_CONFIG_GLOBAL: '/home/a/g', GIT_CONFIG_SYSTEM: '/s' }
  expect(userConfigFiles('/home/a', env)).toEqual([...USUAL, '/home/a/etc/git/config', '/home/a/g', '/s'])
})

test('a relative name, an empty one, or one that is there already adds nothing', () => {
  const env = { XDG_CONFIG_HOME: '/home/a/.config', GIT_CONFIG_GLOBAL: '', GIT_CONFIG_SYSTEM: 'here' }
  expect(userConfigFiles('/home/a', env)).toEqual(USUAL)
})
