import { describe, expect, test } from 'bun:test'
import { TerminalFilter } from './filter.ts'

/** What the terminal gets. The result is the same for every chunk size. */
function shown(text: string): string {
  const bytes = Buffer.from(text)
  const whole = (size: number) => {
    const filter = new TerminalFilter()
    const out: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += size) out.push(filter.push(bytes.subarray(at, at + size)))
    return Buffer.concat([...out, filter.end()]).toString('latin1')
  }
  const results = [1, 2, 3, 7, bytes.length].map(size => whole(Math.max(1, size)))
  expect(new Set(results).size).toBe(1)
  return Buffer.from(results[0] ?? '', 'latin1').toString()
}
const passes = (text: string) => expect(shown(`a${text}b`)).toBe(`a${text}b`)
const dropped = (text: string, left = '') => expect(shown(`a${text}b`)).toBe(`a${left}b`)
const ST = '\x1b\\'

describe('ordinary output', () => {
  test('text passes, in every script', () => {
    passes('plain\r\n\ttext\b')
    passes('Grüße, 日本語, 🙂, \u00a0\u00bf, e\u0301, \u271b')
  })
  test('colours, cursor, modes and the alternate screen pass', () => {
    for (const sequence of [
      '[1;31m',
      '[38:2::1:2:3m',
      '[2J',
      '[?1049h',
      '[6n',
      '[>1u',
      '[22;0t',
      '[8;24;80t',
    ])
      passes(`\x1b${sequence}`)
    for (const sequence of ['7', '8', '(B', '=', 'M', 'c', '#8']) passes(`\x1b${sequence}`)
  })
  test('titles, links, colours and prompt marks pass with either terminator', () => {
    for (const end of ['\x07', ST])
      for (const body of [
        '0;title – ü',
        '2;x',
        '8;;https://example.com',
        '11;?',
        '4;1;#fff',
        '133;A',
        '9;4;1;50',
        '104',
      ])
        passes(`\x1b]${body}${end}`)
  })
  test('pictures pass', () => {
    passes(`\x1bPq#0;2;0;0;0~~${ST}`)
    passes(`\x1bP0;1;0q~~${ST}`)
    passes(`\x1b_Gf=32,s=1,v=1;AAAA${ST}`)
    passes(`\x1b_Ga=T,t=d,f=100,m=1;${'A'.repeat(4096)}${ST}`)
    passes(`\x1b_Ga=d${ST}`)
    passes(`\x1b]1337;File=name=eA==;inline=1:${'A'.repeat(5000)}\x07`)
  })
  test('queries of settings and capabilities pass', () => {
    passes(`\x1bP$qm${ST}`)
    passes(`\x1bP+q544e${ST}`)
  })
  test('invalid bytes do not affect the text after them', () => {
    expect(Buffer.from(new TerminalFilter().push(Uint8Array.of(0x61, 0xff, 0xc3, 0x62)))).toEqual(
      Buffer.from([0x61, 0xc3, 0x62]),
    )
  })
})

describe('the clipboard', () => {
  test('is neither written nor read, however the number is written', () => {
    for (const number of [
      '52',
      '052',
      '0000052',
      '5522',
      '50',
      '1337;Copy=',
      '1337;CopyToClipboard=',
      '51',
      '83',
      '7',
    ])
      for (const end of ['\x07', ST]) dropped(`\x1b]${number};c;ZXZpbA==${end}`, end === ST ? ST : '')
  })
  test('nor with two-byte control characters', () => {
    dropped('\u009d52;c;ZXZpbA==\x07')
    dropped('\u009d52;c;ZXZpbA==\u009c', ST)
  })
  test('nor after another string that is not terminated', () => {
    dropped('\x1b]0;title\x1b]52;c;ZXZpbA==\x07', '\x1b]0;title')
    expect(shown('\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\b')).not.toContain('52')
  })
  test('nor with a line feed or a CAN in between', () => {
    expect(shown('\x1b]5\n2;c;ZXZpbA==\x07')).toBe('')
    expect(shown('\x1b]5\x182;c;x\x07')).not.toContain('\x1b]')
  })
  test('a single control byte above 0x80 outside a character is dropped', () => {
    const bytes = new TerminalFilter().push(Uint8Array.of(0x9d, 0x35, 0x32, 0x3b, 0x41, 0x07))
    expect([...bytes]).toEqual([0x35, 0x32, 0x3b, 0x41, 0x07])
  })
  test('nor after a byte that starts no valid character', () => {
    for (const first of [0xff, 0xf8, 0xf5, 0xc0, 0xc1, 0xe0, 0xf0])
      expect([
        ...new TerminalFilter().push(Uint8Array.of(first, first === 0xf0 ? 0x8d : 0x9d, 0x41)),
      ]).toEqual(first === 0xe0 || first === 0xf0 ? [first, 0x41] : [0x41])
    for (const text of ['\u{1d11e}', '\u0820', '\u275a', '\u015d', '\u{10fffd}']) passes(text)
  })
  test('nor in another encoding, where the second byte of a letter is a control character', () => {
    for (const chosen of ['%@', '%G', '%/G', ' F', ' G']) dropped(`\x1b${chosen}`)
    expect(shown('\x1b%@\u015d52;c;ZXZpbA==\x07')).toBe('\u015d52;c;ZXZpbA==\x07')
    for (const chosen of ['(B', '(0', ')A', '#8', '$)A', '7', '=', 'c', 'M']) passes(`\x1b${chosen}`)
  })
  test('nor with a control character between ESC and the rest', () => {
    for (const between of ['\n', '\r', '\0', '\x7f', '\x08']) {
      expect(shown(`\x1b${between}]52;c;ZXZpbA==\x07`)).toBe(between === '\x7f' ? '' : between)
      expect(shown(`\x1b[2${between}1t`)).toBe(between === '\x7f' ? '' : between)
      expect(shown(`\x1b%${between}@`)).toBe(between === '\x7f' ? '' : between)
    }
    expect(shown('\x1bé]52;c;ZXZpbA==\x07')).toBe('é]52;c;ZXZpbA==\x07')
  })
})

describe('sequences that make the terminal type', () => {
  test('titles are not reported', () => {
    for (const report of ['21t', '20t', '021t', '21;0t', '21:1t']) dropped(`\x1b[${report}`)
    dropped('\u009b21t')
    passes('\x1b[18t')
  })
  test('nor around a line feed', () => dropped('\x1b[2\n1t', '\n'))
  test('answerback is not requested', () => dropped('\x05'))
  test('keys are not redefined', () => dropped(`\x1bP0;1|17/6c730a${ST}`, ST))
})

describe('sequences that act beyond the screen', () => {
  test('pictures are not read from files or shared memory of the host', () => {
    for (const way of ['t=f', 't=t', 't=s', 'a=q,t=f', 't=d,t=f', 't=df', 't='])
      dropped(`\x1b_G${way};L2V0Yy9wYXNzd2Q=${ST}`, ST)
    dropped(`\x1b_G\x01t=f;L2V0Yy9wYXNzd2Q=${ST}`, ST)
  })
  test('files are not sent to the host', () => dropped('\x1b]1337;File=name=eA==;inline=0:AAAA\x07'))
  test('commands to terminals and multiplexers are dropped', () => {
    dropped(`\x1bP@kitty-cmd{"cmd":"launch"}${ST}`, ST)
    dropped(`\x1b]51;["call","Tapi_x",[]]\x07`)
    dropped(`\x1b^message${ST}`, ST)
    dropped(`\x1bXtext${ST}`, ST)
    dropped(`\x1b_other${ST}`, ST)
  })
  test('nothing is printed, and the screen is not read back', () => {
    for (const sequence of ['5i', '?5i', 'i', '1;1;1;1;1;1*y']) dropped(`\x1b[${sequence}`)
  })
  test('an unterminated sequence is dropped after a bound', () => {
    expect(shown(`\x1b]${'1'.repeat(10_000)}\x07after`)).toBe('after')
    expect(shown(`\x1b[${'1'.repeat(10_000)}mafter`)).toBe('after')
  })
  test('an open string is terminated at the end', () => {
    expect(shown('\x1b]0;title')).toBe(`\x1b]0;title${ST}`)
    expect(shown('\x1b[3')).toBe('')
  })
})
