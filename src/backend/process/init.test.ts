import { describe, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { skipUnless } from '../../../test/skip.ts'
import { Stopwatch } from '../../../test/stopwatch.ts'
import { commandGroup, endInit } from './init.ts'

const works = Bun.which('unshare') !== null && Bun.spawnSync(['unshare', '-Urpf', 'true']).exitCode === 0
const inNamespace = skipUnless(works, 'user namespaces are not available')

/** The init of a PID namespace and its children, with a shell in front, as bubblewrap is. */
async function start(script: string) {
  const outside = Bun.spawn(['unshare', '-Urpf', 'sh', '-c', script], { stdout: 'pipe', stderr: 'inherit' })
  const reader = outside.stdout.getReader()
  await reader.read()
  const children = await Bun.file(`/proc/${outside.pid}/task/${outside.pid}/children`).text()
  return { outside, init: Number(children.trim()) }
}
const groupOf = (pid: number) =>
  Number(Bun.spawnSync(['ps', '-o', 'pgid=', '-p', String(pid)]).stdout.toString())

describe('an init', () => {
  inNamespace('is ended, and gone only with the last of its processes', async () => {
    const { outside, init } = await start('trap "" TERM; (trap "" TERM; echo up; exec sleep 30) & wait')
    const [sleeper = ''] = (await Bun.file(`/proc/${init}/task/${init}/children`).text()).split(' ')
    expect(existsSync(`/proc/${sleeper}`)).toBe(true)
    await endInit(init)
    expect(existsSync(`/proc/${sleeper}`)).toBe(false)
    await outside.exited
  })
  inNamespace('a pid that was never an init is neither killed nor waited for', async () => {
    const watch = new Stopwatch()
    await endInit(process.pid)
    await endInit(0x3fffff)
    expect(watch.ms).toBeLessThan(500)
  })
  inNamespace('its command is signalled in the group that the command leads', async () => {
    const own = await start('setsid sh -c "echo up; sleep 30; :" & wait')
    const same = await start('sh -c "echo up; sleep 30; :" & wait')
    expect(commandGroup(own.init)).not.toBe(groupOf(own.init))
    expect(commandGroup(same.init)).toBe(groupOf(same.init))
    for (const { init, outside } of [own, same]) {
      process.kill(init, 'SIGKILL')
      await outside.exited
    }
    expect(commandGroup(own.init)).toBeUndefined()
  })
})
