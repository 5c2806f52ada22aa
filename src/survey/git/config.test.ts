import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseGitConfig, riskySettings, showSetting } from './config.ts'

const shown = (text: string): readonly string[] | undefined => parseGitConfig(text)?.map(showSetting)
const risky = (text: string): readonly string[] => riskySettings(parseGitConfig(text) ?? [])

describe('the format, as git reads it', () => {
  test.each([
    ['[core]\n\tbare = false\n', ['core.bare=false']],
    ['[core] hooksPath = x', ['core.hookspath=x']],
    ['[CORE]\nHooksPath=x', ['core.hookspath=x']],
    ['[remote "Origin"]\nurl = a # note', ['remote.Origin.url=a']],
    ['[a "x\\"]y"]\nb = c', ['a.x"]y.b=c']],
    ['[a.b]\nc = d', ['a.b.c=d']],
    ['[a]\nb = "x ; y" z  ', ['a.b=x ; y z']],
    ['[a]\nb = one\\\ntwo\nc = d', ['a.b=onetwo', 'a.c=d']],
    ['[a]\nflag', ['a.flag=true']],
    ['\ufeff[a]\r\nb = c\r\n', ['a.b=c']],
    ['; note\n# note\n\n[a]\nb = \\\\x\\n', ['a.b=\\x\n']],
    ['[a]\nb =\n', ['a.b=']],
  ])('%j', (text, wanted) => expect(shown(text)).toEqual(wanted))

  test.each([
    ['b = c'],
    ['[a\nb = c'],
    ['[a]\n= c'],
    ['[a]\nb = "open'],
    ['[a]\nb = \\q'],
    ['[a]\nb c'],
    ['[a]\nb\0=c'],
  ])('%j is not judged at all', text => expect(parseGitConfig(text)).toBeUndefined())

  test('no text makes it throw', () => {
    const piece = fc.constantFrom(
      '[a]',
      '[a "',
      '"',
      '\\',
      '\n',
      '\r\n',
      'b = ',
      '=',
      '#',
      ';',
      ' ',
      'x',
      '\ufeff',
      '[include]',
      'path',
    )
    fc.assert(fc.property(fc.array(piece, { maxLength: 30 }), pieces => void parseGitConfig(pieces.join(''))))
  })
})

describe('what git could be made to run', () => {
  test.each([
    '[core]\nfsmonitor = ./evil',
    '[core]\nhooksPath = h',
    '[core]\nsshCommand = x',
    '[core]\neditor = x',
    '[core]\nworktree = /home',
    '[diff]\nexternal = x',
    '[diff "y"]\ntextconv = x',
    '[filter "y"]\nclean = x',
    '[alias]\nst = !x',
    '[gpg]\nprogram = x',
    '[include]\npath = x',
    '[includeIf "gitdir:/"]\npath = x',
    '[protocol "ext"]\nallow = always',
    '[credential]\nhelper = x',
    '[remote "o"]\nuploadpack = x',
    '[remote "o"]\nurl = ext::sh -c x',
    '[url "x"]\ninsteadOf = y',
    '[submodule "x"]\nupdate = !x',
    '[extensions]\nworktreeConfig = true',
  ])('%j is risky', text => expect(risky(text)).toHaveLength(1))

  test('what git init, clone and checkout write is not', () => {
    const text = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	fsmonitor = true
[remote "origin"]
	url = git@git.example.com:a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = A
[submodule "lib"]
	active = true
	url = https://git.example.com/lib.git
`
    expect(risky(text)).toEqual([])
  })
})

describe('a remote', () => {
  const url = (value: string): string => `[remote "origin"]\nurl = ${value}\n`
  test('on another machine is harmless, and so is a branch that follows it', () => {
    for (const value of [
      'https://git.example.com/a.git',
      'ssh://git@git.example.com:22/a',
      'git@git.example.com:a/b.git',
      'git.example.com:a/b',
      'git://git.example.com/a',
    ])
      expect(risky(`${url(value)}[branch "main"]\nremote = origin\nmerge = refs/heads/main\n`)).toEqual([])
    expect(risky('[branch "main"]\nremote = .\n')).toEqual([])
  })
  test('in a directory of this one is not: a push runs the hooks that are there', () => {
    for (const value of [
      '/srv/a',
      './evil.git',
      'evil',
      'file:///srv/a',
      'a/b:c',
      'ext::sh -c x',
      '-x:y',
      'x::y',
      'ssh://-x/y',
    ])
      expect(risky(url(value))).toEqual([`remote.origin.url=${value}`])
  })
  test('that a branch follows by a path is not either, named as a remote would be', () => {
    expect(risky(`${url('https://git.example.com/a')}[branch "main"]\nremote = evil\n`)).toEqual([
      'branch.main.remote=evil',
    ])
    expect(risky('[branch "main"]\npushRemote = ../evil\n')).toEqual(['branch.main.pushremote=../evil'])
  })
})
