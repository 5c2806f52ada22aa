/** Mistakes of a program, and what the library must report right. */
import { expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { claim } from './claim.ts'
import type { Program } from './program.ts'

claim(
  'a listener that throws loses no event for others, and its error is reported',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    await program.ask('throw')
    for (const name of ['one', 'two']) await program.failure('read', { path: `/root/${name}` })
    const heard: string[] = []
    for (
      const late = performance.now() + 10_000;
      heard.length < 4 && performance.now() < late;
      await Bun.sleep(20)
    )
      heard.push(...(await program.ask('events')).map(({ name }) => name))
    expect(heard).toEqual(['denial', 'error', 'denial', 'error'])
  },
)

claim('a mistake of a program is reported in words, and nothing runs', async (program, place) => {
  const options = { project: place.project }
  const wrong = async (
    op: Parameters<Program['failure']>[0],
    order: object,
    words: string,
    hint?: string,
  ) => {
    const failed = await program.failure(op, order)
    expect({ op, order, ...failed }).toMatchObject({ isOurs: true, what: expect.stringContaining(words) })
    if (hint !== undefined) expect(failed.hint).toContain(hint)
  }
  await wrong('start', { ...options, ofline: true }, 'no option "ofline"', '"offline"')
  await wrong('start', {}, 'the option project of Sandbox.start() is undefined')
  await wrong('start', { ...options, offline: 'yes' }, 'is the string "yes"', 'true or false')
  await wrong('start', { ...options, policy: { netwrok: {} } }, 'netwrok', 'network')
  await wrong('start', { ...options, policy: { network: { ofline: true } } }, 'ofline', 'offline')
  expect(place.isRunning()).toBe(false)
  await program.ask('start', options)
  await wrong('exec', { command: 5 }, 'the command of a call is the number 5', 'array of strings')
  await wrong('exec', { command: null }, 'is null')
  await wrong('exec', { command: 'true', options: { timout: 1 } }, 'no option "timout"', '"timeout"')
  await wrong('exec', { command: 'true', options: { env: 'A=1' } }, 'the option env')
  await wrong('unread', { command: 'true', options: { stdin: 'x' } }, 'box.spawn() has no option "stdin"')
  await wrong('read', { path: 7 }, 'the path of a call is the number 7')
  await wrong('read', { path: 'a', options: { form: 1 } }, 'no option "form"', '"from"')
  await wrong('read', { path: 'a', options: { from: -1 } }, 'from is -1')
  await wrong('write', { path: 'a', content: 7 }, 'the content of files.write()')
  await wrong('write', { path: 'a', content: '', options: { exectable: true } }, 'no option "exectable"')
  await wrong('delete', { path: 'a', options: { recursiv: true } }, 'no option "recursiv"')
  await wrong('search', { pattern: 7 }, 'the pattern of files.search()')
  await wrong('search', { pattern: 'a', options: { ignorecase: true } }, 'no option', '"ignoreCase"')
  await wrong('allow', { target: 7 }, 'the host of box.allow()')
  await wrong('allow', { target: 'a.example:443', options: { onec: true } }, 'no option "onec"', '"once"')
  await wrong('grant', { path: '/etc/hosts', options: { write: true } }, 'no option "write"')
  await wrong('grant', {}, 'the path of box.grant() is undefined')
  await wrong('revoke', {}, 'the path of box.revoke() is undefined')
  await wrong('request', { wanted: { hots: 'a' } }, 'no option "hots"', '"host"')
  await wrong('request', { wanted: null }, 'are null')
  await wrong('forward', { port: '3000' }, '3000 is not a port')
  await wrong('forward', { port: 3000, options: { port: 1 } }, 'no option "port"')
  await wrong('listenTo', { event: 'denail' }, 'unknown event "denail"', '"denial"')
  expect(existsSync(join(place.project, 'a'))).toBe(false)
  expect(await program.exec('echo right')).toMatchObject({ stdout: 'right\n' })
})

claim(
  'concurrent commands do not get each other’s refusals as their own',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const refused = (host: string) => `curl -s -m 5 http://${host}/ || true`
    expect((await program.exec(refused('alone.example'))).denials).toMatchObject([
      { target: 'alone.example:80', by: 'command' },
    ])
    const [one, two] = await program.ask('pair', {
      commands: [`${refused('one.example')}; sleep 1`, `sleep 0.3; ${refused('two.example')}`],
    })
    for (const [result, other] of [
      [one, 'two.example:80'],
      [two, 'one.example:80'],
    ] as const)
      expect(result?.denials.filter(({ target, by }) => target === other && by === 'command')).toEqual([])
  },
  {},
)
