import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import { makeRaw, SavedModes, windowSize } from './host-terminal.ts'
import { isTerminal } from './termios.ts'

const undoOf = (...output: string[]) => {
  const modes = new SavedModes()
  for (const text of output) modes.observe(text)
  return modes.undo()
}

describe('restoring the terminal after a program', () => {
  test('does nothing when it only printed', () => expect(undoOf('text\r\n\x1b[2J\x1b[H')).toBe(''))
  test('resets screen, mouse, paste and cursor', () => {
    expect(undoOf('\x1b[?1049h\x1b[?1000;1006h', '\x1b[?2004h\x1b[?25l')).toBe(
      '\x1b[?1049l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?25h',
    )
  })
  test('does nothing when the program reset its modes itself', () => {
    expect(undoOf('\x1b[?1049h\x1b[?25l', '\x1b[?1049l\x1b[?25h')).toBe('')
  })
  test('leaves an unknown mode alone', () => expect(undoOf('\x1b[?12345h')).toBe(''))
  test('resets colours, keypad, character set and extended keys', () => {
    expect(undoOf('\x1b[1;31m')).toBe('\x1b[0m')
    expect(undoOf('\x1b[m\x1b[0m')).toBe('')
    expect(undoOf('\x1b=\x1b(0\x1b[>1u\x1b[>4;2m')).toBe('\x1b>\x1b(B\x1b[<99u\x1b[>4m')
  })
})

describe('a terminal', () => {
  test('is distinguished from a file', () => {
    const fd = openSync('/dev/null', 'r')
    expect(isTerminal(fd)).toBe(false)
    expect(windowSize(fd)).toEqual({ cols: 80, rows: 24 })
    makeRaw(fd)()
    closeSync(fd)
  })
  test('is made raw and restored', () => {
    const known = new Set(readdirSync('/proc/self/fd'))
    const terminal = new Bun.Terminal({ cols: 101, rows: 33 })
    const slave = Number(
      readdirSync('/proc/self/fd').find(fd => !known.has(fd) && linkOf(fd).startsWith('/dev/pts/')),
    )
    expect(isTerminal(slave)).toBe(true)
    expect(windowSize(slave)).toEqual({ cols: 101, rows: 33 })
    const before = stty(slave)
    const restore = makeRaw(slave)
    expect(stty(slave)).toContain('-icanon')
    expect(stty(slave)).toContain('-isig')
    restore()
    expect(stty(slave)).toBe(before)
    terminal.close()
  })
})

const linkOf = (fd: string): string => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}
const stty = (fd: number): string =>
  Bun.spawnSync(['stty', '-a'], { stdio: [fd, 'pipe', 'ignore'] } as never).stdout?.toString() ?? ''
