import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { readKernelFile, readOfProcess } from './kernel-file.ts'

test('a file of the kernel is read whole', () => {
  expect(readKernelFile('/proc/self/cmdline')).toBe(readFileSync('/proc/self/cmdline', 'latin1'))
  expect(readKernelFile('/proc/sys/kernel/osrelease')).toBe(
    readFileSync('/proc/sys/kernel/osrelease', 'latin1'),
  )
})

test('a file larger than the buffer is read whole, and a small one after it', () => {
  const symbols = readKernelFile('/proc/kallsyms')
  expect(symbols.length).toBeGreaterThan(100_000)
  expect(symbols.endsWith('\n')).toBe(true)
  expect(readKernelFile('/proc/self/comm')).toBe(readFileSync('/proc/self/comm', 'latin1'))
})

test('non-ASCII letters are read as UTF-8 on request', () => {
  const before = process.title
  const name = 'pän'
  process.title = name
  expect(readKernelFile('/proc/self/comm', 'utf8')).toBe(readFileSync('/proc/self/comm', 'utf8'))
  process.title = before
})

test('an absent file throws with its errno', () => {
  expect(() => readKernelFile('/proc/self/nothing')).toThrow('ENOENT')
})

test('a process that has ended and is not reaped counts as gone; one that runs does not', async () => {
  const script = 'sleep 0 & echo $!; exec sleep 20'
  const parent = Bun.spawn(['sh', '-c', script], { stdout: 'pipe' })
  const { value } = await parent.stdout.getReader().read()
  const child = Number(new TextDecoder().decode(value))
  while (!readOfProcess(child, 'stat')?.includes(') Z ')) await Bun.sleep(5)
  expect(readOfProcess(child, 'mountinfo')).toBeUndefined()
  expect(readOfProcess(parent.pid, 'mountinfo')).toContain(' / ')
  parent.kill()
})
